// The table of roles says what the operations say: no row is missing, and each mark is that
// of the gate's rule.
import { expect, test } from 'vitest'
import { rank, roles } from './access.ts'
import { operations } from './index.ts'
import { roleMatrix } from './role-matrix.ts'

test('every operation for members is in it, with the roles that it admits', () => {
  const rows = roleMatrix()
  const expected = operations.filter(({ op }) => 'role' in op.access && !op.deprecated)
  expect(rows.map(({ title }) => title).toSorted()).toEqual(expected.map(({ op }) => op.title).toSorted())
  for (const { title, least, allowed, apiKey } of rows) {
    const { access } = expected.find(({ op }) => op.title === title)!.op
    if (!('role' in access)) throw new Error(title)
    expect([least, apiKey], title).toEqual([access.role, access.apiKey])
    for (const role of roles) expect(allowed[role], `${title} ${role}`).toBe(rank(role) >= rank(access.role))
  }
})

test('some rows as a person would expect them', () => {
  const rows = new Map(roleMatrix().map((row) => [row.title, row]))
  expect(rows.get('Delete namespace')?.allowed).toEqual({
    observer: false,
    operator: false,
    administrator: false,
    owner: true,
  })
  expect(rows.get('Get devices')?.least ?? rows.get('Get devices list')?.least).toBe('observer')
  expect(rows.get('Add a member')?.least).toBe('administrator')
})
