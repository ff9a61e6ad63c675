// Where a user is signed in. A sign-in begins with Login and ends with its last token, or when the user ends
// it: all of its tokens are then refused from the next request on. API keys are no sign-ins.
import Type, { type Static } from './type.ts'
import { user } from './access.ts'
import { sample } from './examples.ts'
import { patterns, Timestamp, Uuid } from './fields.ts'
import { operation } from './operation.ts'
import { SentenceParts } from './sentences.ts'

export const SignIn = Type.Object({
  id: Uuid,
  client: Type.String({ description: 'The browser or program, as far as it says what it is.' }),
  client_parts: Type.Optional(SentenceParts),
  agent: Type.String({ description: 'What the client said it is (User-Agent).' }),
  source: Type.String({ description: 'The address of the sign-in.' }),
  created_at: Timestamp,
  used_from: Type.String({ description: 'The address of its last use.' }),
  used_at: Type.String({
    format: 'date-time',
    description: 'When it was last used, to within five minutes.',
  }),
  current: Type.Boolean({ description: 'The one that this request was made with.' }),
})
export type SignIn = Static<typeof SignIn>

export const signIns = {
  list: operation({
    title: 'Get sign-ins',
    summary: 'Where the caller is signed in, the one that was used last first.',
    method: 'GET',
    path: '/api/users/sign-ins',
    access: user,
    answer: Type.Array(SignIn),
    failures: [],
    example: {},
  }),
  end: operation({
    title: 'End a sign-in',
    summary: 'Ends one of the caller’s sign-ins at once; `current` stands for the one that asks.',
    method: 'DELETE',
    path: '/api/users/sign-ins/:id',
    access: user,
    audit: 'user.signed-out',
    params: Type.Object({ id: Type.String({ pattern: `${patterns.uuid}|^current$` }) }),
    failures: [],
    example: { params: { id: sample.signIn } },
  }),
  endOthers: operation({
    title: 'End all other sign-ins',
    summary: 'Ends every sign-in of the caller but the one that asks.',
    method: 'DELETE',
    path: '/api/users/sign-ins',
    access: user,
    audit: 'user.signed-out',
    answer: Type.Object({ ended: Type.Integer({ description: 'How many have ended.' }) }),
    failures: [],
    example: {},
  }),
}
