// Gives memory of this process back to the system, by two functions of the C library called through node:ffi.
// Where Node has no node:ffi (before 26), or the system no /proc, nothing is given back.
//   - malloc_trim returns what the C library keeps of freed memory.
//   - madvise takes the pages of Node's own program file out of this process. Most of them served the start
//     and are never read again. The system keeps them in its file cache while it has nothing better to do, so
//     a page that is needed again costs a page fault and no disk.
import { readFileSync, readlinkSync } from 'node:fs'
import type * as Ffi from 'node:ffi'

const definitions = {
  malloc_trim: { arguments: ['uint64'], return: 'int32' },
  madvise: { arguments: ['uint64', 'uint64', 'int32'], return: 'int32' },
} as const satisfies Ffi.FunctionDefinitions
/** MADV_DONTNEED. Written pages would be lost, so it is only for pages that equal their file. */
const not_needed = 4

/** Open as long as we run. Null: there is no node:ffi, or another C library. */
let library: Ffi.DynamicLibraryResult<typeof definitions> | null | undefined

function functions(): Ffi.DynamicLibraryResult<typeof definitions>['functions'] | undefined {
  try {
    library ??= process.getBuiltinModule('node:ffi')?.dlopen(null, definitions) ?? null
  } catch {
    library = null
  }
  return library?.functions
}

export function trimHeap(): void {
  functions()?.malloc_trim(0n)
}

/** Never fails: the rest stays in memory. */
export function dropProgramPages(): void {
  const { madvise } = functions() ?? {}
  if (!madvise) return
  try {
    const program = readlinkSync('/proc/self/exe')
    for (const { start, end } of unchangedMappings(readFileSync('/proc/self/smaps', 'latin1'), program))
      madvise(start, end - start, not_needed)
  } catch {
    // There is no /proc, or it hides this from us.
  }
}

interface Mapping {
  readonly start: bigint
  readonly end: bigint
}

/** The mappings of the file that nobody can write to and that equal the file. */
export function unchangedMappings(smaps: string, file: string): Mapping[] {
  const mappings: Mapping[] = []
  for (const text of smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)) {
    const [, start, end, name] = /^([0-9a-f]+)-([0-9a-f]+) r-.p \S+ \S+ \S+ +(.*)$/m.exec(text) ?? []
    // Pages that the loader has written before it made the mapping read-only.
    const isWritten = !/^Anonymous: +0 kB$/m.test(text) || !/^Swap: +0 kB$/m.test(text)
    if (start === undefined || name !== file || isWritten) continue
    mappings.push({ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) })
  }
  return mappings
}
