// A program for bench/access.ts: an agent as the field has them, of either version of the tunnel, in a
// process of its own so that its processor time is not the gateway's.
//   bench/old-agent.ts <url> <tenant> <version> <name>
import { client } from '@hawser/contract/client'
import { startOldAgent } from '../tests/harness/old-agent.ts'

const [url = '', tenant_id = '', version, hostname = ''] = process.argv.slice(2)
const server = { url, api: (options = {}) => client({ url, ...options }) }
const agent = await startOldAgent(server, { version: version === '2' ? 2 : 1, tenant_id, hostname })
console.log(JSON.stringify({ event: 'tunnel.up', uid: agent.uid }))
await agent.lost
