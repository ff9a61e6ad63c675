// Tags: words on devices, public keys and firewall rules. A tag exists while it is in use.
import Type from './type.ts'
import { member } from './access.ts'
import { sample } from './examples.ts'
import { Tag } from './fields.ts'
import { operation } from './operation.ts'

const params = Type.Object({ tag: Tag })

export const tags = {
  list: operation({
    title: 'List tags',
    summary: 'Every tag in use in the namespace, on devices, public keys and firewall rules.',
    method: 'GET',
    path: '/api/tags',
    access: member('observer'),
    list: Type.String(),
    failures: [],
    example: {},
  }),
  rename: operation({
    title: 'Rename tag',
    summary: 'Renames the tag wherever it is used.',
    method: 'PUT',
    path: '/api/tags/:tag',
    access: member('operator'),
    audit: 'tag.renamed',
    params,
    body: Type.Object({ tag: Tag }),
    failures: ['conflict'],
    example: { params: { tag: sample.tag }, body: { tag: 'jetty' } },
  }),
  remove: operation({
    title: 'Delete tag',
    summary:
      'Removes the tag everywhere. An active firewall rule without another tag becomes inactive; that needs an administrator.',
    method: 'DELETE',
    path: '/api/tags/:tag',
    access: member('operator'),
    audit: 'tag.removed',
    params,
    headers: Type.Object({
      'x-notice': Type.String({
        description: 'Names the firewall rules that became inactive; empty: none did.',
      }),
    }),
    failures: [],
    example: { params: { tag: sample.spareTag } },
  }),
}
