// The setting of now decides who may continue a session, also by way of another node than its own.
import { test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { attach, home, other, owner, ready, sit } from '../cluster/continuing.ts'

test('hold_sessions at 0: no other node takes the terminal of a session', async () => {
  using first = sit(home)
  await ready(first, 'first')
  await owner.namespaces.edit({ params: { tenant: sample.tenant }, body: { settings: { hold_sessions: 0 } } })
  using second = attach(other)
  await second.until(/You have no such session to continue here/)
  first.type('echo "still $VALUE"\n')
  await first.until(/still first\r\n/)
})
