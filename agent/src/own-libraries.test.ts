import { expect, test } from 'vitest'
import { hideLibraries, ownLibraries, withOwn } from './own-libraries.ts'

const folder = '/opt/hawser-agent/lib'

test('an environment without our folder stays as it is', () => {
  const env = { LD_LIBRARY_PATH: '/usr/local/lib', HOME: '/root' }
  hideLibraries(env, folder)
  expect(env).toEqual({ LD_LIBRARY_PATH: '/usr/local/lib', HOME: '/root' })
  expect(ownLibraries()).toEqual({})
})

test('our folder goes, however the launcher spelled it, and comes back for our own children', () => {
  const env: Record<string, string> = { LD_LIBRARY_PATH: '/opt/hawser-agent/bin/../lib', HOME: '/root' }
  hideLibraries(env, folder)
  expect(env).toEqual({ HOME: '/root' })
  expect(ownLibraries()).toEqual({ LD_LIBRARY_PATH: folder })
})

test('what the administrator has set stays', () => {
  const env = { LD_LIBRARY_PATH: '/opt/hawser-agent/bin/../lib:/usr/local/lib' }
  hideLibraries(env, folder)
  expect(env).toEqual({ LD_LIBRARY_PATH: '/usr/local/lib' })
})

test('what a session has of its own is there again once our Node has become the program', () => {
  const session = { LD_LIBRARY_PATH: '/usr/local/lib', HOME: '/root' }
  const env = withOwn(session, { LD_LIBRARY_PATH: folder })
  expect(env).toEqual({ LD_LIBRARY_PATH: `${folder}:/usr/local/lib`, HOME: '/root' })
  hideLibraries(env, folder)
  expect(env).toEqual(session)
  expect(withOwn({ HOME: '/root' }, { LD_LIBRARY_PATH: folder })).toEqual({
    LD_LIBRARY_PATH: folder,
    HOME: '/root',
  })
  expect(withOwn(session)).toEqual(session)
})
