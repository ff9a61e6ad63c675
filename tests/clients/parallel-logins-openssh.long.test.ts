// Many logins by public key at the same time: 120 to each kind of agent by each kind of client.
import { parallelLogins } from './parallel-logins.ts'

parallelLogins(10)
