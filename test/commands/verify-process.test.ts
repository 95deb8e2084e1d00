import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { ENV, MAIN } from '../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'

/** With the documented limits, at which a run waits for the next window. */
function startServer(transport: 'http1' | 'tls'): Promise<TestSidecar> {
  return startSidecar({
    transport,
    documentedLimits: true,
    config: { oauth: { revocation_path: '/oauth/revoke' } },
  })
}

/** Starts `postern verify`. */
function startVerify(url: string, flags: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const passwordFile = join(temporaryDirectory(), 'password')
  writeFileSync(passwordFile, PASSWORD, { mode: 0o600 })
  const args = [MAIN, 'verify', url, '--password-file', passwordFile, ...flags]
  const child = spawn(process.execPath, args, { env: { ...ENV, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  closeLater(() => void child.kill('SIGKILL'))
  return { child, exit: once(child, 'exit'), stderr: text(child.stderr) }
}

it('a closed terminal (SIGHUP) ends a run like Ctrl-C: the tokens are revoked', async () => {
  const server = await startServer('http1')
  const { child, exit, stderr } = startVerify(server.url, [])
  await once(child.stdout, 'data')
  await expect.poll(() => server.metric('postern_tokens')).toBeGreaterThan(0)
  child.kill('SIGHUP')
  child.stdout.resume()
  expect(await exit).toEqual([1, null])
  expect(await stderr).toMatch(/stopping; a second signal.*the run was stopped before its end/s)
  expect(await server.metric('postern_tokens')).toBe(0)
})

it('H121 a closed pipe ends a run quietly, and the tokens are revoked', async () => {
  const server = await startServer('http1')
  const { child, exit, stderr } = startVerify(server.url, [])
  await once(child.stdout, 'data')
  child.stdout.destroy()
  expect(await exit).toEqual([141, null])
  expect(await stderr).toBe('')
  expect(await server.metric('postern_tokens')).toBe(0)
})

it('without --ca the authorities of the system are trusted', async () => {
  const server = await startServer('tls')
  const flags = ['--only', 'C11']
  const { certFile: other } = await makeCertificate()
  const own = join(temporaryDirectory(), 'own.pem')
  writeFileSync(own, await server.certificate())
  const trusting = startVerify(server.url, flags, { SSL_CERT_FILE: own })
  trusting.child.stdout.resume()
  expect(await trusting.exit, await trusting.stderr).toEqual([0, null])
  const doubting = startVerify(server.url, flags, { SSL_CERT_FILE: other })
  doubting.child.stdout.resume()
  expect(await doubting.exit).toEqual([1, null])
  expect(await doubting.stderr).toMatch(
    /certificate.*; name its certificate, or that of its authority, with --ca/,
  )
  expect(await doubting.stderr).not.toContain('--use-system-ca')
})

it.each([[['--json']], [[]]])(
  'output that is lost to a full disk (%j) gives exit code 1 and a reason',
  async (flags) => {
    const server = await startServer('http1')
    const passwordFile = join(temporaryDirectory(), 'password')
    writeFileSync(passwordFile, PASSWORD, { mode: 0o600 })
    const full = openSync('/dev/full', 'w')
    closeLater(() => closeSync(full))
    const args = [
      MAIN,
      'verify',
      server.url,
      '--password-file',
      passwordFile,
      '--only',
      'C11',
      '--quick',
      ...flags,
    ]
    const child = spawn(process.execPath, args, { env: ENV, stdio: ['ignore', full, 'pipe'] })
    const exit = once(child, 'exit')
    expect(await text(child.stderr ?? expect.unreachable())).toContain(
      'postern verify: cannot write the output: ENOSPC: no space left on device, write\n',
    )
    expect(await exit).toEqual([1, null])
  },
)
