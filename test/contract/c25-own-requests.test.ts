import { expect, it } from 'vitest'
import { startHoldingDevice } from '../support/device.ts'
import { startSidecar } from '../support/sidecar.ts'
import { waitForQueued } from '../support/waiting.ts'

it('C25 a health check takes a place: a request waits for it, and it waits for a request', async () => {
  const { device, held } = await startHoldingDevice()
  const upstream = { max_in_flight: 1, health: { path: '/alive', interval: '1s' } }
  const sidecar = await startSidecar({ device, config: { upstream } })
  const token = await sidecar.token()
  await device.waitForRequests(1)
  const response = sidecar.request({ path: '/', token })
  await waitForQueued(sidecar, 1)
  expect(device.requests.map(({ target }) => target)).toEqual(['/alive'])
  held[0]?.end()
  await device.waitForRequests(2)
  await sidecar.clock.advance(3_000)
  await waitForQueued(sidecar, 1)
  expect(device.requests.map(({ target }) => target)).toEqual(['/alive', '/'])
  held[1]?.end('done')
  expect((await response).text).toBe('done')
  await device.waitForRequests(3)
  held[2]?.end()
})

it('C25 a login that the device checks takes a place: it waits for a request', async () => {
  const { device, held } = await startHoldingDevice()
  const auth = { kind: 'basic', user: 'admin', check_path: '/check' }
  const config = {
    password: { file: undefined, device: true },
    public_paths: ['/public'],
    upstream: { max_in_flight: 1, auth },
  }
  const sidecar = await startSidecar({ device, config })
  const response = sidecar.request({ path: '/public' })
  await device.waitForRequests(1)
  const login = sidecar.postToken({ grant_type: 'password', password: 'secret' })
  await waitForQueued(sidecar, 1)
  expect(device.requests.map(({ target }) => target)).toEqual(['/public'])
  held[0]?.end('done')
  expect((await response).text).toBe('done')
  await device.waitForRequests(2)
  // Without the password the device refuses, with it it answers.
  if (held[1] !== undefined) held[1].statusCode = 401
  held[1]?.setHeader('WWW-Authenticate', 'Basic realm="device"')
  held[1]?.end()
  await device.waitForRequests(3)
  held[2]?.end()
  expect((await login).status).toBe(200)
})
