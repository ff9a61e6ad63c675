// Checks one bcrypt hash in a thread of its own, because the check takes a tenth of a second of JavaScript
// and would stop the server's traffic for that long. Takes {password, hash} as the worker's data and answers
// true or false.
import { parentPort, workerData } from 'node:worker_threads'
import { compareSync } from 'bcryptjs'

const { password, hash } = workerData as { password: string; hash: string }
parentPort!.postMessage(compareSync(password, hash))
