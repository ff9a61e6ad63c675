// Turns the groups of a list filter into SQL. A resource names its filterable properties; anything else was
// refused earlier, and values only travel as parameters.
import type { Condition, Group } from '@hawser/contract/filters'
import { invariant } from '@hawser/contract/failures'
import { sql, type Expression, type RawBuilder, type SqlBool } from 'kysely'
import type { Opened } from './dialects/dialect.ts'

export interface Column {
  readonly sql: RawBuilder<unknown>
  readonly kind: 'text' | 'number' | 'flag' | 'tags'
  /** Finds rows by substring through an index; without it the rows are examined one by one. */
  readonly search?: (text: string) => RawBuilder<SqlBool> | undefined
  readonly match?: (text: string) => string | undefined
  /** Finds the rows with this value through an index. */
  readonly among?: (value: Condition['value']) => RawBuilder<SqlBool> | undefined
  /** Finds rows by tag: through the index of tags, or by examining each row. */
  readonly tagged?: (tag: Tagged, indexed: boolean) => RawBuilder<SqlBool>
}

export type Tagged = readonly string[] | string
export type Columns = Readonly<Record<string, Column>>

/** Substring search that ignores the case of ASCII letters. Wildcards are escaped. */
export function containsSql(
  dialect: Opened['name'],
  value: RawBuilder<unknown>,
  text: string,
): RawBuilder<SqlBool> {
  // SQLite's LIKE ignores the case of ASCII letters, as ILIKE does under our columns' collation.
  const like = dialect === 'postgres' ? sql`ilike` : sql`like`
  const pattern = `%${text.replaceAll(/[\\%_]/g, (character) => `\\${character}`)}%`
  return sql<SqlBool>`${value} ${like} ${pattern} escape '\\'`
}

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

/** A tag or an indexed value is estimated to be as selective as a text of this many letters. */
const lengthOfTag = 6

/** Above this many alternatives, examining each row costs less than asking an index for each. */
export const mostIndexed = 8

/**
 * The conditions whose indexes yield the rows of a filter: one where all must hold, each where any suffices.
 * Among several groups, the one with the longest text is likely to name the fewest rows.
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

/** Conditions that are not `indexed` are written so that the database does not use their indexes. */
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
  // PostgreSQL would give the number the column's type, and refuse 1.5 or a very large one for an integer.
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
  const each = tags.map((tag) => tagged([tag]))
  return each.length === 0 ? sql<SqlBool>`1 = 1` : sql<SqlBool>`(${sql.join(each, sql` and `)})`
}
