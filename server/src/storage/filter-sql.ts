// Turns the groups of a list filter into SQL. A resource names its filterable properties and what each stands for;
// anything else was refused before it came here, and values only ever travel as parameters.
import type { Condition, Group } from '@hawser/contract/filters'
import { invariant } from '@hawser/contract/failures'
import { sql, type Expression, type RawBuilder, type SqlBool } from 'kysely'
import type { Opened } from './dialects/dialect.ts'

export interface Column {
  readonly sql: RawBuilder<unknown>
  readonly kind: 'text' | 'number' | 'flag' | 'tags'
  /** How to find rows by substring through an index, where there is one; without it the rows are looked at one by one. */
  readonly search?: (text: string) => RawBuilder<SqlBool> | undefined
  /** How to find rows by tag. */
  readonly tagged?: (tag: Tagged) => RawBuilder<SqlBool>
}

export type Tagged = { is: string } | { contains: string }
export type Columns = Readonly<Record<string, Column>>

/** Wildcards in the searched text are meant as themselves. */
export function likeText(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`
}

/** A field of a column that holds JSON as text. */
export function jsonField(dialect: Opened['name'], column: string, field: string, kind: 'text' | 'number'): RawBuilder<unknown> {
  const value =
    dialect === 'sqlite' ? sql`(${sql.ref(column)} ->> ${sql.lit(field)})` : sql`(cast(${sql.ref(column)} as json) ->> ${sql.lit(field)})`
  return kind === 'number' && dialect === 'postgres' ? sql`cast(${value} as double precision)` : value
}

export function whereGroups<Q extends { where(condition: Expression<SqlBool>): Q }>(
  query: Q,
  groups: readonly Group[],
  columns: Columns,
  dialect: Opened['name'],
  indexed = false,
): Q {
  for (const group of groups) {
    const parts = group.conditions.map((condition) => toSql(condition, columns, dialect, indexed))
    query = query.where(sql<SqlBool>`(${sql.join(parts, group.join === 'and' ? sql` and ` : sql` or `)})`)
  }
  return query
}

function toSql(condition: Condition, columns: Columns, dialect: Opened['name'], indexed: boolean): RawBuilder<SqlBool> {
  const column = columns[condition.property]
  invariant(column, `the filterable property ${condition.property} has a column`)
  const { operator, value } = condition
  if (column.kind === 'tags') return tagsSql(column, operator, value)
  if (operator === 'contains') {
    const text = String(value)
    const found = indexed ? column.search?.(text) : undefined
    if (found) return found
    // SQLite's LIKE ignores the case of ASCII letters by itself.
    const like = dialect === 'postgres' ? sql`ilike` : sql`like`
    return sql<SqlBool>`${column.sql} ${like} ${likeText(text)} escape '\\'`
  }
  const plain = column.kind === 'flag' ? (value === true ? 1 : 0) : value
  const sign = { eq: sql`=`, ne: sql`<>`, gt: sql`>`, lt: sql`<` }[operator]
  return sql<SqlBool>`${column.sql} ${sign} ${plain}`
}

function tagsSql(column: Column, operator: Condition['operator'], value: Condition['value']): RawBuilder<SqlBool> {
  invariant(column.tagged, 'a tags column knows how to find tags')
  const tagged = column.tagged
  if (operator === 'ne') return sql<SqlBool>`not ${tagged({ is: String(value) })}`
  if (operator === 'eq') return tagged({ is: String(value) })
  if (typeof value === 'string') return tagged({ contains: value })
  // A list of tags: the row must have each of them.
  const each = (value as readonly string[]).map((tag) => tagged({ is: tag }))
  return each.length === 0 ? sql<SqlBool>`1 = 1` : sql<SqlBool>`(${sql.join(each, sql` and `)})`
}
