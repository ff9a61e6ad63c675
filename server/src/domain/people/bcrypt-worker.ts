// Checks one bcrypt hash ({password, hash} as worker data; answers true or false) in a thread of its own: a
// tenth of a second of JavaScript would stop the server's traffic.
import { parentPort, workerData } from 'node:worker_threads'
import { compareSync } from 'bcryptjs'

const { password, hash } = workerData as { password: string; hash: string }
parentPort!.postMessage(compareSync(password, hash))
