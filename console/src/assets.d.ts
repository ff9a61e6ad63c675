// Pictures become addresses when the console is built, styles become files of their own.
declare module '*.css' {}
declare module '*.svg' {
  const address: string
  export default address
}
