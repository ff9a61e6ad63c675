// One check of a bcrypt hash, in a thread of its own: it is a tenth of a second of arithmetic in JavaScript,
// during which the server has other people's bytes to carry. Takes {password, hash} as the worker's data and
// answers true or false.
import { parentPort, workerData } from 'node:worker_threads'
import { compareSync } from 'bcryptjs'

const { password, hash } = workerData as { password: string; hash: string }
parentPort!.postMessage(compareSync(password, hash))
