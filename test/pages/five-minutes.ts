import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { clientOf } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { unusedPort } from '../support/raw.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs } from '../support/tools.ts'

const CTRL_C = '\x03'

/**
 * Types the first commands of README.md on a terminal: the download from the folder `release`, the check of its sum, and the demo,
 * which Ctrl-C ends. `signers` is the vendor's key, which users have from another place. Returns a folder with the program `postern` and what the demo left in its temporary folder.
 */
export async function downloadAndTry(
  release: string,
  signers: string,
): Promise<{ folder: string; temporary: string }> {
  for (const tool of ['script', 'bash', 'curl', 'ssh-keygen']) needs(tool)
  const [folder, temporary] = [temporaryDirectory(), temporaryDirectory()]
  writeFileSync(join(folder, 'signers'), signers)
  const processor = process.arch === 'arm64' ? 'arm64' : 'x64'
  const printed = replaceIn(shellBlock('README.md', 'sha256sum'), 'linux-x64', `linux-${processor}`)
  const { screen } = await runOnTerminal(
    ['bash', '-c', replaceIn(printed, 'https://downloads.example.com/postern', `file://${release}`)],
    { cwd: folder, env: { PATH: process.env.PATH, HOME: temporary, TMPDIR: temporary } },
    ['Copy these into another terminal', ''],
    ['Ctrl-C stops', CTRL_C],
  )
  expect(screen).toContain('Good "postern-release" signature for vendor@example.com')
  expect(screen).toMatch(/^VERSION: OK\n(.*: OK\n)*version: /m)
  expect(screen).toContain(`postern-linux-${processor}.gz: OK\n`)
  expect(screen).not.toContain('WARNING')
  return { folder, temporary }
}

/**
 * Types the commands of README.md for a device of one's own, in a folder with the program `postern`, until a client has used a token.
 * README.md says to write `./postern` outside a clone.
 */
export async function putBeforeDevice(folder: string): Promise<void> {
  for (const tool of ['script', 'bash']) needs(tool)
  const device = await startDevice()
  const printed = replaceIn(shellBlock('README.md', 'init --url'), 'npm run -s postern --', './postern')
  const block = replaceIn(printed, 'http://192.0.2.7', device.url)
  const [port, adminPort] = [await unusedPort(), await unusedPort()]
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    POSTERN_LISTEN_ADDRESS: `127.0.0.1:${port}`,
    POSTERN_ADMIN_ADDRESS: `127.0.0.1:${adminPort}`,
  }
  const stop = Promise.withResolvers<string>()
  const session = runOnTerminal(
    ['bash', '-c', block],
    { cwd: folder, env },
    ['Choice [1]: ', '\r'],
    ['Password: ', `${PASSWORD}\r`],
    ['Password again: ', `${PASSWORD}\r`],
    ['At once [up to 4]: ', '\r'],
    ['listening', stop.promise],
  )
  const client = clientOf(
    `https://127.0.0.1:${port}`,
    `http://127.0.0.1:${adminPort}`,
    'tls',
    join(folder, 'state'),
  )
  await expect.poll(() => client.use('none').catch(String)).toBe(401)
  expect(await client.use((await client.grant()).access_token)).toBe(200)
  stop.resolve(CTRL_C)
  const { screen } = await session
  const verdicts = [...screen.matchAll(/^(ok|WARNING|FAILED)(?= )/gm)].map(([verdict]) => verdict)
  expect(new Set(verdicts)).toEqual(new Set(['ok']))
  expect(readFileSync(join(folder, 'password'), 'utf8')).toMatch(/^\$argon2id\$\S+\n$/)
}
