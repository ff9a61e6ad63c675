// Pictures become addresses when the console is built, and styles files of their own.
declare module '*.svg' {
  const address: string
  export default address
}
declare module '*.css'
