import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { copyFileSync, readFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { expect, it, onTestFinished } from 'vitest'
import { makeCertificate } from '../support/certificate.ts'
import { connect } from '../support/client.ts'
import { rawConnection } from '../support/raw.ts'
import { encodeForm, FORM_TYPE, PASSWORD } from '../support/sidecar.ts'
import { needs } from '../support/tools.ts'
import { prepareSite } from './serve.ts'

/** Every descriptor below it is taken, so none can be opened. */
const NONE = 3

function allowDescriptors(pid: number, most: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:`])
}

it('C8 files that change while no descriptor is left are read when there is one again', async () => {
  needs('prlimit')
  const files = await makeCertificate()
  const site = await prepareSite({
    transport: 'tls',
    config: { listen: { tls: { cert: files.certFile, key: files.keyFile } } },
  })
  const sidecar = await site.serve()
  const kept = await connect({ transport: 'tls', url: sidecar.url })
  const logIn = (password: string) =>
    kept.send({
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', FORM_TYPE],
      body: encodeForm({ grant_type: 'password', password }),
    })
  const token = String((await logIn(PASSWORD)).json().access_token)

  allowDescriptors(sidecar.pid, NONE)
  await logIn(PASSWORD)
  const next = await makeCertificate()
  copyFileSync(next.keyFile, files.keyFile)
  copyFileSync(next.certFile, files.certFile)
  site.configure({ realm: 'another' })
  site.setPassword('another password')
  await sidecar.waitForLog('token file: could not be flushed; a power cut may lose the latest tokens')
  await sidecar.waitForLog('configuration not reloaded: the previous one stays in effect')
  await expect.poll(() => sidecar.log.some(({ reason }) => String(reason).includes('EMFILE'))).toBe(true)

  allowDescriptors(sidecar.pid, 10_000)
  await sidecar.waitForLog('token file: complete again')
  await sidecar.waitForLog('configuration reloaded', ({ changed }) => String(changed).includes('realm'))
  await expect.poll(() => sidecar.use(token)).toBe(401)
  const refused = await sidecar.request({ token })
  expect(refused.header('www-authenticate')).toContain('realm="another"')
  expect((await sidecar.login('another password')).status).toBe(200)
  const { socket } = await rawConnection(sidecar.url)
  expect((socket as TLSSocket).getPeerX509Certificate()?.raw).toEqual(
    new X509Certificate(readFileSync(next.certFile)).raw,
  )
})

it('C8 a password file that could not be read when it changed ends the tokens of the former password', async () => {
  needs('prlimit')
  const site = await prepareSite()
  const sidecar = await site.serve()
  const { access_token: token } = await sidecar.grant()
  allowDescriptors(sidecar.pid, NONE)
  site.setPassword('another password')
  await expect.poll(() => sidecar.log.some(({ reason }) => String(reason).includes('EMFILE'))).toBe(true)
  allowDescriptors(sidecar.pid, 10_000)
  await expect.poll(() => sidecar.use(token)).toBe(401)
})

it('C26 client connections leave descriptors free for what has to be opened', async () => {
  needs('prlimit')
  const site = await prepareSite()
  const sidecar = await site.serve({ under: ['prlimit', '--nofile=300:300'] })
  const line = await sidecar.waitForLog('listen.max_connections is lowered: too few files may be open')
  expect(line).toMatchObject({ limit: 300, connections: 45 })
})

it('C8 connections to the admin listener leave descriptors free for a changed password', async () => {
  needs('prlimit')
  const site = await prepareSite()
  const sidecar = await site.serve({ under: ['prlimit', '--nofile=300:300'] })
  const { access_token: token } = await sidecar.grant()
  const { hostname: host, port } = new URL(sidecar.adminUrl)
  // More connections than there are descriptors. Each address may have a share of them, so they come from several.
  const peers = Array.from({ length: 320 }, (_, i) =>
    connectTcp({ host, port: Number(port), localAddress: `127.0.0.${2 + (i % 4)}` }).on('error', () => {}),
  )
  onTestFinished(() => {
    for (const peer of peers) peer.destroy()
  })
  await Promise.all(peers.map((peer) => new Promise((resolve) => peer.once('connect', resolve))))
  site.setPassword('another password')
  await sidecar.waitForLog('the password has changed')
  expect(await sidecar.use(token)).toBe(401)
  expect(sidecar.log.filter(({ reason }) => String(reason).includes('EMFILE'))).toEqual([])
})
