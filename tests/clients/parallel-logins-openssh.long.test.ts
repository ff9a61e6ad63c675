// Many logins by public key at the same time: 480 to each kind of agent by each kind of client.
import { parallelLogins } from './parallel-logins.ts'

parallelLogins(40)
