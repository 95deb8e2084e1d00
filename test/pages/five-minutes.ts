import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { expect } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { unusedPort } from '../support/raw.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { runOnTerminal, type Session } from '../support/terminal.ts'
import { needs } from '../support/tools.ts'

const CTRL_C = '\x03'

/**
 * Types the commands of docs/installing.md for one file on a terminal: the download from the folder `release`, the check of its sum and
 * signature, and the demo, which Ctrl-C ends. `signers` is the vendor's key, which users have from another place. Returns a folder with the
 * program `postern` and what the demo left in its temporary folder.
 */
export async function downloadAndTry(
  release: string,
  signers: string,
): Promise<{ folder: string; temporary: string }> {
  for (const tool of ['script', 'bash', 'curl', 'ssh-keygen']) needs(tool)
  const [folder, temporary] = [temporaryDirectory(), temporaryDirectory()]
  writeFileSync(join(folder, 'signers'), signers)
  const processor = process.arch === 'arm64' ? 'arm64' : 'x64'
  const download = replaceIn(
    shellBlock('docs/installing.md', 'RELEASE='),
    'https://downloads.example.com/postern',
    `file://${release}`,
  )
  const verify = shellBlock('docs/installing.md', 'ssh-keygen -Y verify')
  const printed = `${download}${verify}${shellBlock('docs/installing.md', 'gunzip')}`
  const { screen } = await runOnTerminal(
    ['bash', '-ec', replaceIn(printed, 'linux-x64', `linux-${processor}`)],
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

/** The program in a clone, as README.md spells it. */
export const IN_CLONE = 'npm run -s postern --'

/**
 * Types the commands of README.md for a device of one's own in `folder`, until `try` shows the response of the device. The umask is 002, as
 * Debian and Ubuntu set it for people.
 *
 * @param program where the folder is no clone, the words in place of those of a clone
 */
export async function putBeforeDevice(folder: string, program = IN_CLONE): Promise<void> {
  for (const tool of ['script', 'bash']) needs(tool)
  const device = await startDevice()
  const typed = (block: string): string =>
    `umask 002\n${program === IN_CLONE ? block : replaceIn(block, IN_CLONE, program)}`
  // The packages are there, also in a clone of this test: CI types this line on a fresh machine.
  const first = replaceIn(shellBlock('README.md', 'init --url'), 'npm ci\n', '')
  const [port, adminPort] = [await unusedPort(), await unusedPort()]
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    POSTERN_LISTEN_ADDRESS: `127.0.0.1:${port}`,
    POSTERN_ADMIN_ADDRESS: `127.0.0.1:${adminPort}`,
  }
  const tried = Promise.withResolvers<Session>()
  const inAnotherTerminal = async (): Promise<string> => {
    const block = typed(shellBlock('README.md', 'postern -- try'))
    const typing = runOnTerminal(['bash', '-c', block], { cwd: folder, env }, ['Password: ', `${PASSWORD}\r`])
    typing.then(tried.resolve, tried.reject)
    await tried.promise
    return CTRL_C
  }
  const served = await runOnTerminal(
    ['bash', '-c', typed(replaceIn(first, 'http://192.0.2.7', device.url))],
    { cwd: folder, env },
    ['Choice [1]: ', '\r'],
    ['Password: ', `${PASSWORD}\r`],
    ['Password again: ', `${PASSWORD}\r`],
    ['At once [up to 4]: ', '\r'],
    ['listening', inAnotherTerminal],
  )
  const { screen, code } = await tried.promise
  expect([code, screen]).toEqual([0, expect.stringContaining('\n\nfrom the device\n')])
  expect(screen).toMatch(/^Password: \n200 OK\n(?:.*\n)*X-RateLimit-Remaining: 59\n/m)
  expect(screen).toContain(`${program} issue --for 1h; } |\n`)
  for (const shown of [screen, served.screen]) expect(shown).not.toContain(PASSWORD)
  expect(device.requests.at(-1)?.target).toBe('/api/whatever')
  const verdicts = [...served.screen.matchAll(/^(ok|WARNING|FAILED)(?= )/gm)].map(([verdict]) => verdict)
  expect(new Set(verdicts)).toEqual(new Set(['ok']))
  const log = stripVTControlCharacters(served.screen)
  expect(log).toMatch(/INFO: GET \/api\/whatever 200 [\d.]+ ms 127\.0\.0\.1\n/)
  expect(readFileSync(join(folder, 'password'), 'utf8')).toMatch(/^\$argon2id\$\S+\n$/)
}
