// Builds the console and does nothing else: for images and packages, where the server cannot do it at its
// first start.
import { buildConsole } from './build.ts'

await buildConsole()
