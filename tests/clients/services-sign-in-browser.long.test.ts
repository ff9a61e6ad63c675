// The way into a service from its own address, on a server that has no domain for services: they are below
// `localhost` then, for browsers on the same machine.
import { expect, test } from 'vitest'
import { sample } from '@hawser/contract/examples'
import { eventually } from '../harness/eventually.ts'
import { startProgram } from '../harness/services.ts'
import { field, heading, press, seen, signIn } from './console.ts'
import { sharedWeb } from './services-programs.ts'

const web = sharedWeb('localhost')

const startDevice = () =>
  startProgram((request, response) => {
    response.setHeader('content-type', 'text/html')
    const person = String(request.headers['x-hawser-user'] ?? '')
    response.end(`<!doctype html><link rel="icon" href="data:,"><h1>${request.url}</h1><p>${person}</p>`)
  })

test('a person comes to the address of a service, signs in at the console, and lands where they wanted to be', async () => {
  await using device = await startDevice()
  const { url, address } = await web.add(device.port, { identify: true })
  expect(url).toBe(`http://${address}.localhost:${new URL(web.console).port}`)
  await using person = await web.window()
  const { page } = person
  await page.goto(`${url}/rooms/7?lamp=on&room=a%2Fb`)
  const at = new URL(page.url())
  expect([at.origin, at.pathname]).toEqual([web.console, expect.stringMatching(/^\/(open|login)/)])
  await field(page, 'Password').waitFor()
  await signIn(page, sample.operator)
  await page.waitForURL(`${url}/rooms/7?lamp=on&room=a%2Fb`)
  await page.getByRole('heading', { name: '/rooms/7?lamp=on&room=a%2Fb' }).waitFor()
  await page.getByText(sample.operator.username, { exact: true }).waitFor()
  expect(person.troubles).toEqual([])

  // Another service of the same person, without signing in again.
  const second = await web.add(device.port)
  await page.goto(`${second.url}/second`)
  await page.waitForURL(`${second.url}/second`)
  await page.getByRole('heading', { name: '/second' }).waitFor()
})

test('the fragment of an address is still there after signing in', async () => {
  await using device = await startDevice()
  const { url } = await web.add(device.port)
  await using person = await web.open(`${url}/dashboard#/lamps`)
  await person.page.getByRole('heading', { name: '/dashboard' }).waitFor()
  expect(person.page.url()).toBe(`${url}/dashboard#/lamps`)
})

test('whoever may not open it reads so, and signs in as somebody who may', async () => {
  await using device = await startDevice()
  const { url } = await web.add(device.port, { role: 'administrator' })
  await using person = await web.window()
  const { page } = person
  await page.goto(`${url}/wanted`)
  await signIn(page, sample.observer)
  await seen(page, 'There is no such service, or you may not open it.')
  await press(page, 'Sign in as someone else')
  await signIn(page, sample.administrator)
  await page.waitForURL(`${url}/wanted`)
  await page.getByRole('heading', { name: '/wanted' }).waitFor()
})

test('signing out at the console ends what is open', async () => {
  await using device = await startDevice()
  const { url } = await web.add(device.port)
  await using person = await web.open(url)
  const { page } = person
  await page.getByRole('heading', { name: '/' }).waitFor()
  await page.goto(web.console)
  await heading(page, sample.namespace)
  await press(page, /: profile and more$/)
  await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click()
  await field(page, 'Password').waitFor()
  await eventually(async () => {
    await page.goto(url)
    expect(new URL(page.url()).origin).toBe(web.console)
  })
  await field(page, 'Password').waitFor()
})

test('a public service and a link need no account', async () => {
  await using device = await startDevice()
  const open = await web.add(device.port, { audience: 'public' })
  const linked = await web.add(device.port, { audience: 'link' })
  const { link } = (await web.operator.services.newLink({ params: { id: linked.id } })).body
  await using person = await web.window()
  const { page } = person
  await page.goto(`${open.url}/open`)
  await page.getByRole('heading', { name: '/open' }).waitFor()
  await page.goto(link)
  expect(page.url()).toBe(`${linked.url}/`)
  await page.goto(`${linked.url}/again`)
  await page.getByRole('heading', { name: '/again' }).waitFor()
  expect(person.refusals).toEqual([])
})
