import { once } from 'node:events'
import { copyFileSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { connect as connectTcp, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { prepareSite, type Site } from '../process/serve.ts'
import { makeCertificate } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { PAGE_PASSWORD, pagePasswordFile } from '../support/passwords.ts'
import { unusedPort } from '../support/raw.ts'
import { needs, run } from '../support/tools.ts'

/** A sidecar with `admin.tls: on`, and where its admin listener is. */
async function site(config: Record<string, unknown> = {}): Promise<Site & { readonly port: number }> {
  const port = await unusedPort()
  const made = await prepareSite({
    transport: 'tls',
    config: { ...config, admin: { address: `127.0.0.1:${port}`, tls: 'on', ...(config.admin as object) } },
  })
  return { ...made, port }
}

async function servedBy(port: number): Promise<string | undefined> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { fingerprint256 } = socket.getPeerCertificate()
  socket.destroy()
  return fingerprint256
}

it('H320 with admin.tls the admin listener speaks TLS only, with the certificate of listen.tls', async () => {
  needs('curl')
  const { port, configFile, ...made } = await site()
  const launched = await made.serveHere()
  expect((await launched.waitForLog('listening')).admin).toBe(`https://127.0.0.1:${port}`)
  const { cert } = parse(readFileSync(configFile, 'utf8')).listen.tls
  const read = await run('curl', ['-sS', '--cacert', cert, `https://localhost:${port}/metrics`])
  expect([read.code, read.stdout]).toEqual([0, expect.stringContaining('postern_build_info')])

  const strange = await run('curl', ['-sS', `https://localhost:${port}/metrics`])
  expect(strange.code).toBe(60)
  const plain = await run('curl', ['-sS', `http://localhost:${port}/metrics`])
  expect([plain.code, plain.stdout]).not.toEqual([0, expect.stringContaining('postern_build_info')])
  const old = await run('curl', ['-sSk', '--tls-max', '1.1', `https://localhost:${port}/metrics`])
  expect(old.code).not.toBe(0)
  expect(launched.log.filter(({ level }) => level >= 50)).toEqual([])
})

it('H320 a new certificate is served there, too, and the old one while the new one cannot be used', async () => {
  const { port, configFile, ...made } = await site()
  const launched = await made.serveHere()
  const { cert, key } = parse(readFileSync(configFile, 'utf8')).listen.tls
  const before = await servedBy(port)
  writeFileSync(`${cert}.new`, 'no certificate')
  renameSync(`${cert}.new`, cert)
  launched.signal('SIGHUP')
  await launched.waitForLog('configuration not reloaded: the previous one stays in effect')
  expect(await servedBy(port)).toBe(before)

  const other = await makeCertificate()
  copyFileSync(other.keyFile, key)
  copyFileSync(other.certFile, cert)
  launched.signal('SIGHUP')
  await expect.poll(() => servedBy(port)).not.toBe(before)
})

it('H320 the cookie of the live page is Secure, and a page over cleartext is another origin', async () => {
  const made = await site({ admin: { password_file: pagePasswordFile() } })
  await made.serveHere()
  const socket = connect({ host: '127.0.0.1', port: made.port, rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  closeLater(() => {
    socket.destroy()
  })
  const logIn = async (scheme: string): Promise<[number | undefined, string | undefined]> => {
    const asked = request({
      createConnection: () => connect({ host: '127.0.0.1', port: made.port, rejectUnauthorized: false }),
      method: 'POST',
      path: '/page/login',
      headers: {
        Host: `127.0.0.1:${made.port}`,
        Origin: `${scheme}://127.0.0.1:${made.port}`,
        'Content-Type': 'application/x-www-form-urlencoded',
      },
    }).end(new URLSearchParams({ password: PAGE_PASSWORD }).toString())
    const [response] = await once(asked, 'response')
    response.resume()
    return [response.statusCode, response.headers['set-cookie']?.[0]]
  }
  expect(await logIn('https')).toEqual([
    303,
    expect.stringMatching(/; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=604800$/),
  ])
  expect(await logIn('http')).toEqual([403, undefined])
})

it('H321 healthy trusts the configured certificate also when it has expired', async () => {
  const day = 86_400_000
  const { certFile, keyFile } = await makeCertificate('expired', {
    notBefore: new Date(Date.now() - 9 * day),
    notAfter: new Date(Date.now() - day),
  })
  const made = await site({ listen: { tls: { cert: certFile, key: keyFile } } })
  await made.serveHere()
  expect(await made.postern('healthy')).toMatchObject({ code: 0 })
})

it('H321 healthy trusts the configured certificate and no other', async () => {
  const made = await site()
  const launched = await made.serveHere()
  const where = `/healthz at 127.0.0.1:${made.port}`
  expect(await made.postern('healthy')).toMatchObject({ code: 0, stdout: `ok: ${where}\n` })
  expect(await made.postern('healthy', '--ready')).toMatchObject({ code: 0 })

  const other = await makeCertificate()
  const { cert } = parse(readFileSync(made.configFile, 'utf8')).listen.tls
  const own = readFileSync(cert)
  copyFileSync(other.certFile, cert)
  expect(await made.postern('healthy')).toMatchObject({
    code: 1,
    stderr: `postern healthy: ${where}: another certificate than that in ${cert} is served there\n`,
  })
  writeFileSync(cert, own)
  await launched.stop()
  expect(await made.postern('healthy')).toMatchObject({
    code: 1,
    stderr: `postern healthy: ${where}: no sidecar is running there\n`,
  })
})

it('H321 healthy fails until a self-signed certificate is there, then trusts it', async () => {
  const made = await site({ listen: { tls: 'auto' } })
  expect(await made.postern('healthy')).toMatchObject({ code: 1 })
  await made.serveHere()
  expect(await made.postern('healthy')).toMatchObject({ code: 0 })
  expect(readFileSync(join(made.stateDir, 'tls', 'cert.pem'), 'utf8')).toContain('BEGIN CERTIFICATE')
})

it('H321 healthy fails within its time if what listens there shakes no hands', async () => {
  const made = await site()
  const silent = createTcpServer().listen(made.port, '127.0.0.1')
  await once(silent, 'listening')
  closeLater(() => {
    silent.close()
  })
  silent.on('connection', (socket) => closeLater(() => void socket.destroy()))
  expect(await made.postern('healthy')).toMatchObject({
    code: 1,
    stderr: `postern healthy: /healthz at 127.0.0.1:${made.port}: no response within 3 s\n`,
  })
})

it('H321 healthy says that what listens there speaks no TLS', async () => {
  const made = await site()
  const plain = createServer((_req, res) => res.end()).listen(made.port, '127.0.0.1')
  await once(plain, 'listening')
  closeLater(() => void plain.close())
  const { code, stderr } = await made.postern('healthy')
  expect([code, stderr]).toEqual([
    1,
    `postern healthy: /healthz at 127.0.0.1:${made.port}: what answers there does not speak TLS; if admin.tls has just changed, restart the sidecar\n`,
  ])
})

it('H320 a stop does not wait for a client that shakes no hands', async () => {
  const made = await site()
  const launched = await made.serveHere()
  const client = connectTcp(made.port, '127.0.0.1')
  await once(client, 'connect')
  const closed = once(client, 'close')
  client.on('error', () => {})
  // A request after it has been answered, so the listener has accepted the first one.
  expect(await made.postern('healthy')).toMatchObject({ code: 0 })
  expect(await launched.stop()).toEqual({ code: 0, signal: null })
  await closed
})

it('H320 switching it is left for a restart, and the log says so', async () => {
  const made = await site()
  const launched = await made.serveHere()
  const yaml = parse(readFileSync(made.configFile, 'utf8'))
  writeFileSync(made.configFile, stringify({ ...yaml, admin: { ...yaml.admin, tls: 'off' } }))
  launched.signal('SIGHUP')
  const line = await launched.waitForLog('these keys take effect after a restart')
  expect(line.keys).toEqual(['admin.tls'])
  expect(await servedBy(made.port)).toBeDefined()
})
