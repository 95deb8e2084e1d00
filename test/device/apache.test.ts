import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load.ts'
import { probeDevice } from '../../src/device/own-request.ts'
import { upstreamDeadlines, upstreamTarget } from '../../src/forward/service-settings.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { stillClock } from '../support/clock.ts'
import { opensslCertificate } from '../support/openssl-server.ts'
import { rawConnection, unusedPort } from '../support/raw.ts'
import { needs } from '../support/tools.ts'

const MODULES = '/usr/lib/apache2/modules'

/** Apache that demands a client certificate under /private alone. */
async function startApache(client: string): Promise<{ readonly url: string; readonly ca: string }> {
  needs('apache2')
  const folder = temporaryDirectory()
  const pair = opensslCertificate()
  const port = await unusedPort()
  for (const path of ['', 'private']) {
    mkdirSync(join(folder, 'pages', path), { recursive: true })
    writeFileSync(join(folder, 'pages', path, 'index.html'), 'a page')
  }
  const modules = ['mpm_event', 'ssl', 'authz_core', 'dir'].map(
    (name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`,
  )
  const lines = [
    ...modules,
    `PidFile ${folder}/pid`,
    `ErrorLog ${folder}/error.log`,
    ...[`Listen 127.0.0.1:${port}`, 'ServerName localhost', `DocumentRoot ${folder}/pages`],
    ...['DirectoryIndex index.html', 'SSLEngine on', `SSLCACertificateFile ${client}`],
    ...[`SSLCertificateFile ${pair.certFile}`, `SSLCertificateKeyFile ${pair.keyFile}`],
    '<Location /private>\nSSLVerifyClient require\nSSLVerifyDepth 1\n</Location>',
  ]
  writeFileSync(join(folder, 'httpd.conf'), `${lines.join('\n')}\n`)
  const args = ['-d', folder, '-f', join(folder, 'httpd.conf'), '-X']
  const apache: ChildProcess = spawn('apache2', args, { stdio: 'ignore' })
  const exit = once(apache, 'exit')
  closeLater(async () => {
    apache.kill()
    await exit
  })
  const url = `https://127.0.0.1:${port}`
  const listens = async (): Promise<boolean> => {
    const connection = await rawConnection(url).catch(() => undefined)
    connection?.reset()
    return connection !== undefined
  }
  await expect.poll(listens).toBe(true)
  return { url, ca: pair.certFile }
}

it('H168 Apache that demands a client certificate for some pages gets it over TLS 1.2', async () => {
  const own = opensslCertificate()
  const { url, ca } = await startApache(own.certFile)
  const trust = `ca: ${ca}, cert: ${own.certFile}, key: ${own.keyFile}`
  const statusOf = async (path: string, more = ''): Promise<number> => {
    const sets = [`upstream.url=${url}`, `upstream.tls={${trust}${more}}`, 'password.file=none']
    const service = loadConfig({ sets }).upstream
    const target = await upstreamTarget(service, 'upstream')
    return (await probeDevice(target, upstreamDeadlines(service), path, stillClock())).status
  }
  expect(await statusOf('/')).toBe(200)
  expect(await statusOf('/private/')).toBe(403)
  expect(await statusOf('/private/', ', max_version: TLSv1.2')).toBe(200)
})
