// Types of imported assets: the build turns an image into its URL and a style sheet into a file.
declare module '*.css' {}
declare module '*.svg' {
  const address: string
  export default address
}
