import { expect, it } from 'vitest'
import { prepareSite } from './serve.ts'
import { holdResponses } from './streams.ts'

/** Stands for a bug of Postern: on SIGUSR2, an uncaught error and an unhandled rejection. */
const BUGS = `process.on('SIGUSR2',()=>{setImmediate(()=>{throw/**/new/**/Error('thrown')});Promise.reject(Error('rejected'))})`

it('C20 an uncaught error or rejection is logged; the process and its exchanges continue', async () => {
  const site = await prepareSite()
  const held = holdResponses(site.device)
  const under = ['env', `NODE_OPTIONS=--import=data:text/javascript,${BUGS}`]
  const sidecar = await site.serve({ under })
  const { access_token: token } = await sidecar.grant()
  const connection = await sidecar.connect()
  const stream = connection.start({ path: '/events', fields: ['Authorization', `Bearer ${token}`] })
  await stream.waitFor('first piece')
  sidecar.signal('SIGUSR2')
  for (const message of ['thrown', 'rejected']) {
    const line = await sidecar.waitForLog('internal error: this is a bug in Postern', ({ err }) =>
      JSON.stringify(err).includes(message),
    )
    expect(line.level).toBe(50)
  }
  held.get('/events')?.end('last piece')
  expect((await stream.response).text).toBe('first piece\nlast piece')
  expect(await sidecar.use(token)).toBe(200)
  expect(await sidecar.stop()).toEqual({ code: 0, signal: null })
})
