// A data folder with a damaged database. The server and the administrator's commands say so in one sentence that names
// the file and what to do, and change nothing.
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test, vi } from 'vitest'
import { installations, sentence } from './data-folder.ts'

vi.setConfig({ testTimeout: 120_000 })

const { installation } = installations()

const advice = (folder: string): string =>
  `Stop the server, move ${folder} away, and restore a backup with \`hawser admin restore <folder>\`.`

test('with another beginning', async () => {
  const folder = installation('garbage')
  const file = path.join(folder, 'hawser.db')
  const bytes = readFileSync(file)
  bytes.write('this is no database at all', 0)
  writeFileSync(file, bytes)
  expect(await sentence(folder)).toBe(`${file} is damaged (file is not a database). ${advice(folder)}`)
})

test('that was cut off', async () => {
  const folder = installation('cut')
  const file = path.join(folder, 'hawser.db')
  truncateSync(file, Math.floor(statSync(file).size / 2))
  expect(await sentence(folder)).toBe(
    `${file} is damaged (database disk image is malformed). ${advice(folder)}`,
  )
})

test('with pages that were overwritten', async () => {
  const folder = installation('overwritten')
  const file = path.join(folder, 'hawser.db')
  const bytes = readFileSync(file)
  bytes.fill(0xff, 4096)
  writeFileSync(file, bytes)
  expect(await sentence(folder)).toBe(
    `${file} is damaged (database disk image is malformed). ${advice(folder)}`,
  )
})

test('that is empty: it is not taken for a new one', async () => {
  const folder = installation('empty')
  const file = path.join(folder, 'hawser.db')
  truncateSync(file, 0)
  expect(await sentence(folder)).toBe(
    `${file} is empty, although ${path.join(folder, 'master.key')} is there. ${advice(folder)}`,
  )
  expect(statSync(file).size).toBe(0)
})
