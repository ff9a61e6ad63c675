// The filter of a list, for clients and the server: the base64 of a JSON array of elements. The conditions
// before an `operator` element form one group; groups are joined by `and`.

export type FilterElement =
  | {
      type: 'property'
      params: { name: string; operator: 'contains' | 'eq' | 'ne' | 'bool' | 'gt' | 'lt'; value: unknown }
    }
  | { type: 'operator'; params: { name: 'and' | 'or' } }

export interface Condition {
  readonly property: string
  readonly operator: 'contains' | 'eq' | 'ne' | 'gt' | 'lt'
  readonly value: string | number | boolean | readonly string[]
}

export interface Group {
  readonly join: 'and' | 'or'
  readonly conditions: readonly Condition[]
}

export function encodeFilter(elements: readonly FilterElement[]): string {
  const bytes = new TextEncoder().encode(JSON.stringify(elements))
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}
