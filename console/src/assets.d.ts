// Pictures become addresses when the console is built.
declare module '*.svg' {
  const address: string
  export default address
}
