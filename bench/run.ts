// `npm run bench -- <name>` runs the bench of that name: imports bench/<name>.ts and calls its default export
// with the words that follow. Without a name it lists the benches, each with the first sentence of the
// comment it opens with. What has no default export is no bench but a part of one.
import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

const folder = import.meta.dirname
const names = globSync('*.ts', { cwd: folder, exclude: ['*.test.ts'] })
  .filter((file) => /^export default /m.test(readFileSync(path.join(folder, file), 'utf8')))
  .map((file) => path.basename(file, '.ts'))
  .toSorted()

const [name, ...args] = process.argv.slice(2)
if (name === undefined) {
  list()
} else if (!names.includes(name)) {
  console.error(`bench: there is no bench "${name}".`)
  list()
  process.exitCode = 1
} else {
  const bench = (await import(`./${name}.ts`)) as { default?: unknown }
  if (typeof bench.default !== 'function')
    throw new Error(`bench/${name}.ts has no function as its default export`)
  await (bench.default as (...args: string[]) => unknown)(...args)
}

function list(): void {
  const width = Math.max(0, ...names.map((one) => one.length))
  for (const one of names)
    console.log(
      `${one.padEnd(width)}  ${firstSentence(readFileSync(path.join(folder, `${one}.ts`), 'utf8'))}`,
    )
  if (names.length === 0)
    console.log('There are no benches yet: bench/<name>.ts with a function as its default export is one.')
}

function firstSentence(source: string): string {
  const lines = source.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('//'))
  const prose = lines.slice(0, end).map((line) => line.replace(/^\/\/\s?/, ''))
  return /^.*?[.!?](?=\s|$)/.exec(prose.join(' '))?.[0] ?? prose.join(' ')
}
