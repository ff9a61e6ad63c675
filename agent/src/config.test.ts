// The agent's setting for what it names to the server.
import { expect, test } from 'vitest'
import { features } from '@hawser/contract/tunnel'
import { ConfigError, readConfig } from './config.ts'

const read = (FEATURES?: string) =>
  readConfig(
    {
      HAWSER_SERVER_ADDRESS: 'https://hawser.example.com',
      HAWSER_TENANT_ID: '00000000-0000-4000-8000-000000000000',
      ...(FEATURES === undefined ? {} : { HAWSER_FEATURES: FEATURES }),
    },
    true,
  ).features

test('an agent names all that it supports, only what is listed, or nothing', () => {
  expect(read()).toEqual(features)
  expect(read('')).toEqual([])
  expect(read('telepathy')).toEqual([])
  expect(read(` ${features.join(' , ')},telepathy`)).toEqual(features)
  for (const one of features) expect(read(one)).toEqual([one])
})

test('what is no list of names is refused', () => {
  expect(() => read('resume; rm')).toThrow(ConfigError)
})
