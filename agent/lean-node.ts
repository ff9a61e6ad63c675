// A Node for devices, made from the one that nodejs.org builds. That one carries 33 MB of symbols for
// debuggers, and since version 25 it needs libatomic.so.1, which a bare Debian or Ubuntu does not have; it
// would not even start there. Of libatomic it uses one function, at eight places in V8, always for eight
// bytes in their natural place, because of a compiler that does not see that they are. So the file is written
// anew without symbols, with that function (a single instruction on x64, a loop of two on arm64) in the
// unused end of its last page of code, and without the need. Whatever is not as it is described here is
// refused, and the Node is then used as it is: a Node that needs no libatomic only loses its symbols.
//
// ELF, 64 bits, little-endian. The header says where the table of segments is (56 bytes each: type, flags,
// offset, address, …, size in the file, size in memory). One segment is the dynamic section: pairs of a tag
// and a value, by which the loader finds the names of the libraries, the versions it wants of each (a chain
// of records), the symbols and the relocations.

const library = 'libatomic.so.1'
const wanted = '__atomic_compare_exchange'

const segment = { load: 1, dynamic: 2 }
const executable = 1
const tags = {
  end: 0n,
  needed: 1n,
  relocationBytes: 2n,
  names: 5n,
  symbols: 6n,
  plainRelocations: 7n,
  plainRelocationBytes: 8n,
  relocations: 23n,
  symbolVersions: 0x6ffffff0n,
  versions: 0x6ffffffen,
  versionCount: 0x6fffffffn,
}
const sizes = { segment: 56, entry: 16, relocation: 24, symbol: 24 }

/**
 * For each processor: its number, the relocation that puts an address of our own into its place, and the
 * function.
 */
const machines: Readonly<Record<number, { readonly relative: number; readonly code: Buffer }>> = {
  // x64. size, object, expected, desired are in rdi, rsi, rdx, rcx; the answer is in al.
  62: {
    relative: 8,
    code: Buffer.from(
      [
        '4883ff08', // cmp rdi, 8
        '7512', // jne to the end
        '488b02', // mov rax, [rdx]
        '488b09', // mov rcx, [rcx]
        'f0480fb10e', // lock cmpxchg [rsi], rcx
        '488902', // mov [rdx], rax: what was found, which is what was expected if it went well
        '0f94c0', // sete al
        'c3', // ret
        '0f0b', // ud2: another size than the one we know
      ].join(''),
      'hex',
    ),
  },
  // arm64. The same in x0, x1, x2, x3; the answer is in w0.
  183: {
    relative: 1027,
    code: words([
      0xf100201f, // cmp x0, 8
      0x540001c1, // b.ne to the end
      0xf9400048, // ldr x8, [x2]
      0xf9400069, // ldr x9, [x3]
      0xc85ffc2a, // again: ldaxr x10, [x1]
      0xeb08015f, // cmp x10, x8
      0x540000a1, // b.ne other
      0xc80bfc29, // stlxr w11, x9, [x1]
      0x35ffff8b, // cbnz w11, again
      0x52800020, // mov w0, 1
      0xd65f03c0, // ret
      0xd5033f5f, // other: clrex
      0xf900004a, // str x10, [x2]
      0x52800000, // mov w0, 0
      0xd65f03c0, // ret
      0xd4200020, // brk: another size than the one we know
    ]),
  },
}

function words(numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(numbers.length * 4)
  for (const [at, number] of numbers.entries()) bytes.writeUInt32LE(number, at * 4)
  return bytes
}

interface Segment {
  readonly header: number
  readonly type: number
  readonly flags: number
  readonly offset: number
  readonly address: number
  readonly size: number
}

/** Throws if it is no such file, or one of a kind that is not known here. */
export function leanNode(node: Buffer): Buffer {
  const found = segmentsOf(node)
  const loaded = found.filter(({ type }) => type === segment.load)
  const file = Buffer.from(node.subarray(0, Math.max(...loaded.map(({ offset, size }) => offset + size))))
  // The table of sections, which only linkers and debuggers read, was behind that.
  file.writeBigUInt64LE(0n, 40)
  file.fill(0, 58, 64)
  withoutLibrary(file, found)
  return file
}

function segmentsOf(file: Buffer): Segment[] {
  if (file.length < 64 || file.readUInt32BE(0) !== 0x7f454c46 || file.readUInt16BE(4) !== 0x0201) {
    throw new Error('This is no program for a Linux of 64 bits.')
  }
  const start = Number(file.readBigUInt64LE(32))
  return Array.from({ length: file.readUInt16LE(56) }, (_, at) => {
    const header = start + at * sizes.segment
    const number = (place: number): number => Number(file.readBigUInt64LE(header + place))
    return {
      header,
      type: file.readUInt32LE(header),
      flags: file.readUInt32LE(header + 4),
      offset: number(8),
      address: number(16),
      size: number(32),
    }
  })
}

function withoutLibrary(file: Buffer, found: readonly Segment[]): void {
  const dynamic = found.find(({ type }) => type === segment.dynamic)
  if (!dynamic) return
  const entries = Array.from({ length: dynamic.size / sizes.entry }, (_, at) => {
    const place = dynamic.offset + at * sizes.entry
    return { tag: file.readBigUInt64LE(place), value: Number(file.readBigUInt64LE(place + 8)) }
  })
  const value = (tag: bigint): number => entries.find((entry) => entry.tag === tag)?.value ?? 0
  /** Where in the file is what will be at that address. */
  const placeOf = (address: number): number => {
    const holder = found.find(
      ({ type, address: from, size }) => type === segment.load && address >= from && address < from + size,
    )
    if (!holder) throw new Error('This program points out of itself.')
    return address - holder.address + holder.offset
  }
  const names = placeOf(value(tags.names))
  const nameAt = (offset: number): string =>
    file.toString('latin1', names + offset, file.indexOf(0, names + offset))

  const needed = entries.findIndex(({ tag, value: name }) => tag === tags.needed && nameAt(name) === library)
  if (needed < 0) return

  // The record of the versions that are wanted of the library is taken out of the chain. Symbols refer to it
  // by a number.
  const records: { readonly place: number; readonly next: number; readonly name: string }[] = []
  for (
    let place = placeOf(value(tags.versions));
    records.length < value(tags.versionCount);
    place += records.at(-1)!.next
  )
    records.push({ place, next: file.readUInt32LE(place + 12), name: nameAt(file.readUInt32LE(place + 4)) })
  const at = records.findIndex(({ name }) => name === library)
  const record = records[at]
  if (!record || file.readUInt16LE(record.place + 2) !== 1)
    throw new Error(`${library} is wanted in a way that is not known here.`)
  const version = file.readUInt16LE(record.place + file.readUInt32LE(record.place + 8) + 6)
  const before = records[at - 1]
  if (before) file.writeUInt32LE(record.next === 0 ? 0 : before.next + record.next, before.place + 12)
  const versions = value(tags.versions) + (before ? 0 : record.next)

  // The function, and the places that want it.
  const machine = machines[file.readUInt16LE(18)]
  if (!machine) throw new Error(`This processor is not known here: ${file.readUInt16LE(18)}.`)
  const [symbols, versionOf] = [placeOf(value(tags.symbols)), placeOf(value(tags.symbolVersions))]
  const wanting = [
    { start: value(tags.relocations), bytes: value(tags.relocationBytes) },
    { start: value(tags.plainRelocations), bytes: value(tags.plainRelocationBytes) },
  ]
    .flatMap(({ start, bytes }) =>
      Array.from({ length: bytes / sizes.relocation }, (_, n) => placeOf(start) + n * sizes.relocation),
    )
    .filter((place) => file.readUInt16LE(versionOf + file.readUInt32LE(place + 12) * 2) === version)
  const code = addCode(file, found, machine.code)
  for (const place of wanting) {
    const name = nameAt(file.readUInt32LE(symbols + file.readUInt32LE(place + 12) * sizes.symbol))
    if (name !== wanted) throw new Error(`${name} is wanted of ${library}, which is not known here.`)
    file.writeBigUInt64LE(BigInt(machine.relative), place + 8)
    file.writeBigUInt64LE(BigInt(code), place + 16)
  }

  const changed = new Map([
    [tags.versions, versions],
    [tags.versionCount, records.length - 1],
  ])
  const kept = [...entries.filter((_, n) => n !== needed), { tag: tags.end, value: 0 }]
  for (const [n, { tag, value: said }] of kept.entries()) {
    file.writeBigUInt64LE(tag, dynamic.offset + n * sizes.entry)
    file.writeBigUInt64LE(BigInt(changed.get(tag) ?? said), dynamic.offset + n * sizes.entry + 8)
  }
}

/** Puts it behind the code, in what is left of the last page; gives its address. */
function addCode(file: Buffer, found: readonly Segment[], code: Buffer): number {
  const text = found.find(({ type, flags }) => type === segment.load && (flags & executable) !== 0)
  const gap = text ? -(text.offset + text.size) & 15 : 0
  const start = text ? text.offset + text.size + gap : 0
  const room = file.subarray(start, start + code.length)
  const taken = found.some(
    ({ type, offset }) => type === segment.load && offset > text!.offset && offset < start + code.length,
  )
  if (!text || taken || room.length < code.length || room.some((byte) => byte !== 0))
    throw new Error('There is no room behind the code.')
  code.copy(file, start)
  for (const place of [32, 40])
    file.writeBigUInt64LE(BigInt(text.size + gap + code.length), text.header + place)
  return text.address + text.size + gap
}
