import { expect, it } from 'vitest'
import { prepareSite } from './serve.ts'
import { holdAnswers } from './streams.ts'

/** Stands for a bug of ours: on SIGUSR2, an error that nobody catches, and a promise whose failure nobody hears. */
const BUGS = `process.on('SIGUSR2',()=>{setImmediate(()=>{throw/**/new/**/Error('thrown')});Promise.reject(Error('rejected'))})`

it('C20 what nobody caught is logged, and costs neither the process nor what runs in it', async () => {
  const site = await prepareSite()
  const held = holdAnswers(site.device)
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
