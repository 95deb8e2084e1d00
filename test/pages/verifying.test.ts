import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { ENV, MAIN } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { PASSWORD, startSidecar } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, run } from '../support/tools.ts'

/** Short windows, so that the whole run takes seconds. */
const LIMITS = { api: { requests: 20, window: '4s' }, oauth: { requests: 15, window: '4s' } }
const FLAGS = '--api-limit 20/4 --oauth-limit 15/4 --flood 1 --connections 4'

it('the commands of docs/verifying.md ask for a password and verify Postern', async () => {
  for (const tool of ['script', 'sh']) needs(tool)
  const sidecar = await startSidecar({
    transport: 'tls',
    config: { listen: { tls: 'auto' }, oauth: { revocation_path: '/oauth/revoke' }, limits: LIMITS },
  })
  const folder = temporaryDirectory()
  const program = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@" ${FLAGS}\n`
  writeFileSync(join(folder, 'postern'), program, { mode: 0o755 })
  const env = { ...ENV, PATH: [folder, process.env.PATH].join(delimiter) }

  const ask = shellBlock('docs/verifying.md', 'stty -echo')
  const asked = await runOnTerminal(['sh', '-c', ask], { env, cwd: folder }, ['Password: ', `${PASSWORD}\r`])
  expect(asked.screen).not.toContain(PASSWORD)
  expect(readFileSync(join(folder, 'password'), 'utf8')).toBe(PASSWORD)
  expect(statSync(join(folder, 'password')).mode & 0o777).toBe(0o600)

  const here = (block: string): string => replaceIn(block, 'https://localhost:8443', sidecar.url)
  const runs = replaceIn(
    here(shellBlock('docs/verifying.md', '--dry-run')),
    '/var/lib/postern/tls/cert.pem',
    join(sidecar.directory, 'state/tls/cert.pem'),
  )
  const json = here(shellBlock('docs/verifying.md', '--json'))
  const { code, stdout, stderr } = await run('sh', ['-ec', `${runs}\n${json}`], {
    env,
    cwd: folder,
    timeout: 240_000,
  })
  expect([code, stdout], stderr).toEqual([0, expect.stringContaining('0 broken')])
  expect(stdout.match(/^\d+ promises of the documented API, checked from outside at /gm)).toHaveLength(3)
  expect(stdout.match(/^\d+ kept, 0 broken, \d+ not testable; \d+ requests in /gm)).toHaveLength(2)
  expect(JSON.parse(readFileSync(join(folder, 'verify.json'), 'utf8'))).toMatchObject({
    result: 'kept',
    broken: 0,
  })
  expect(stderr).toMatch(/^\d+ promises of /)
  for (const text of [stdout, stderr]) expect(text).not.toContain(PASSWORD)
}, 300_000)
