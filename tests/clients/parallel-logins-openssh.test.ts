// Many logins by public key at the same time: the few rounds of every day.
import { parallelLogins } from './parallel-logins.ts'

parallelLogins(3)
