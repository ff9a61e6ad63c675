// Turns the groups of a list filter into SQL. A resource names its filterable properties and what each stands
// for; anything else was refused before it came here, and values only ever travel as parameters.
import type { Condition, Group } from '@hawser/contract/filters'
import { invariant } from '@hawser/contract/failures'
import { sql, type Expression, type RawBuilder, type SqlBool } from 'kysely'
import type { Opened } from './dialects/dialect.ts'

export interface Column {
  readonly sql: RawBuilder<unknown>
  readonly kind: 'text' | 'number' | 'flag' | 'tags'
  /**
   * How to find rows by substring through an index, where there is one; without it the rows are looked at one
   * by one.
   */
  readonly search?: (text: string) => RawBuilder<SqlBool> | undefined
  /** The question to that index, for whoever asks it directly. */
  readonly match?: (text: string) => string | undefined
  /** How to find the rows with this very value through an index, where there is one. */
  readonly among?: (value: Condition['value']) => RawBuilder<SqlBool> | undefined
  /** How to find rows by tag: through the index of tags, or by a look at each row. */
  readonly tagged?: (tag: Tagged, indexed: boolean) => RawBuilder<SqlBool>
}

/** Any of these tags, or one that contains a text. */
export type Tagged = readonly string[] | string
export type Columns = Readonly<Record<string, Column>>

/**
 * A text somewhere in another, without regard to the case of ASCII letters. Wildcards in it are meant as
 * themselves.
 */
export function containsSql(
  dialect: Opened['name'],
  value: RawBuilder<unknown>,
  text: string,
): RawBuilder<SqlBool> {
  // SQLite's LIKE ignores the case of ASCII letters by itself, as ILIKE does under the collation that our
  // columns have.
  const like = dialect === 'postgres' ? sql`ilike` : sql`like`
  const pattern = `%${text.replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`
  return sql<SqlBool>`${value} ${like} ${pattern} escape '\\'`
}

/** A field of a column that holds JSON as text. */
export function jsonField(
  dialect: Opened['name'],
  column: string,
  field: string,
  kind: 'text' | 'number',
): RawBuilder<unknown> {
  const value =
    dialect === 'sqlite'
      ? sql`(${sql.ref(column)} ->> ${sql.lit(field)})`
      : sql`(cast(${sql.ref(column)} as json) ->> ${sql.lit(field)})`
  return kind === 'number' && dialect === 'postgres' ? sql`cast(${value} as double precision)` : value
}

/** A tag, or a value with an index, is taken to name as few rows as a text of so many letters. */
const lengthOfTag = 6

/** Of more conditions of which any will do, a look at each row costs less than to ask an index for each of them. */
export const mostIndexed = 8

/**
 * The conditions whose indexes give the rows of a filter: one where all of a group must hold, each where any will do.
 * Of several groups it is the one that is likely to name the fewest rows: the one with the longest text.
 */
export function leadingConditions(
  groups: readonly Group[],
  columns: Columns,
): readonly Condition[] | undefined {
  const lengthOf = ({ property, operator, value }: Condition): number => {
    const column = columns[property]
    if (column?.kind === 'tags') return operator === 'ne' ? 0 : lengthOfTag
    if (operator === 'eq') return column?.among?.(value) === undefined ? 0 : lengthOfTag
    return operator === 'contains' && column?.search?.(String(value)) !== undefined ? String(value).length : 0
  }
  let leading: readonly Condition[] | undefined
  let longest = 0
  for (const { join, conditions } of groups) {
    const lengths = conditions.map(lengthOf)
    const length = join === 'and' ? Math.max(...lengths) : Math.min(...lengths)
    if (length <= longest || (join === 'or' && conditions.length > mostIndexed)) continue
    longest = length
    leading = join === 'and' ? [conditions[lengths.indexOf(length)]!] : conditions
  }
  return leading
}

/**
 * The rows of conditions that are not indexed are come by in another way, and they do not tempt the database to leave
 * it.
 */
export function whereGroups<Q extends { where(condition: Expression<SqlBool>): Q }>(
  query: Q,
  groups: readonly Group[],
  columns: Columns,
  dialect: Opened['name'],
  isIndexed: (condition: Condition, group: Group) => boolean = () => true,
): Q {
  for (const group of groups) {
    const parts = group.conditions.map((condition) =>
      toSql(condition, columns, dialect, isIndexed(condition, group)),
    )
    query = query.where(sql<SqlBool>`(${sql.join(parts, group.join === 'and' ? sql` and ` : sql` or `)})`)
  }
  return query
}

function toSql(
  condition: Condition,
  columns: Columns,
  dialect: Opened['name'],
  indexed: boolean,
): RawBuilder<SqlBool> {
  const column = columns[condition.property]
  invariant(column, `the filterable property ${condition.property} has a column`)
  const { operator, value } = condition
  if (column.kind === 'tags') return tagsSql(column, operator, value, indexed)
  if (operator === 'contains') {
    const text = String(value)
    const found = indexed ? column.search?.(text) : undefined
    return found ?? containsSql(dialect, column.sql, text)
  }
  const among = indexed && operator === 'eq' ? column.among?.(value) : undefined
  if (among) return among
  const plain = column.kind === 'flag' ? (value === true ? 1 : 0) : value
  const sign = { eq: sql`=`, ne: sql`<>`, gt: sql`>`, lt: sql`<` }[operator]
  // PostgreSQL would read the number as one of the column's type, and refuse 1.5 or a very large one for an
  // integer.
  const operand =
    column.kind === 'number' && dialect === 'postgres'
      ? sql`cast(${plain} as double precision)`
      : sql`${plain}`
  const left = dialect === 'sqlite' && !indexed ? sql`+${column.sql}` : column.sql
  return sql<SqlBool>`${left} ${sign} ${operand}`
}

function tagsSql(
  column: Column,
  operator: Condition['operator'],
  value: Condition['value'],
  indexed: boolean,
): RawBuilder<SqlBool> {
  invariant(column.tagged, 'a tags column knows how to find tags')
  const tagged = (wanted: Tagged) => column.tagged!(wanted, indexed)
  if (operator === 'contains' && typeof value === 'string') return tagged(value)
  const tags = typeof value === 'object' ? value : [String(value)]
  if (operator === 'ne') return sql<SqlBool>`not ${tagged(tags)}`
  if (operator === 'eq') return tagged(tags)
  // A list of tags: the row must have each of them.
  const each = tags.map((tag) => tagged([tag]))
  return each.length === 0 ? sql<SqlBool>`1 = 1` : sql<SqlBool>`(${sql.join(each, sql` and `)})`
}
