import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { ENV, MAIN } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, run } from '../support/tools.ts'

/** The shortest windows that a whole run can judge, with the documented numbers: fewer would make it wait more often. */
const LIMITS = { api: { window: '3s' }, oauth: { window: '3s' } }
const FLAGS = '--api-limit 60/3 --oauth-limit 30/3 --flood 1 --connections 4'

it('the commands of docs/verifying.md ask for a password and verify Postern', async () => {
  for (const tool of ['script', 'sh']) needs(tool)
  const start = (): Promise<TestSidecar> =>
    startSidecar({
      transport: 'tls',
      documentedLimits: true,
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

  const setCa = 'CA=/var/lib/postern/tls/cert.pem\n'
  const runs = shellBlock('docs/verifying.md', '--dry-run')
  const json = shellBlock('docs/verifying.md', '--json')
  expect(runs.startsWith(setCa)).toBe(true)
  // Each block has a server of its own, because two runs at a time would use up each other's windows.
  const [text, document] = await Promise.all(
    [runs, `${setCa}${json}`].map(async (block) => {
      const sidecar = await start()
      const here = replaceIn(block, 'https://localhost:8443', sidecar.url)
      const certificate = join(sidecar.directory, 'state/tls/cert.pem')
      const commands = replaceIn(here, '/var/lib/postern/tls/cert.pem', certificate)
      return run('sh', ['-ec', commands], { env, cwd: folder, timeout: 100_000 })
    }),
  )
  expect([text?.code, text?.stdout], text?.stderr).toEqual([0, expect.stringContaining('0 broken')])
  expect(text?.stdout.match(/^\d+ promises of the documented API, checked from outside at /gm)).toHaveLength(
    3,
  )
  expect(text?.stdout.match(/^\d+ kept, 0 broken, \d+ not testable; \d+ requests in /gm)).toHaveLength(2)
  expect([document?.code, document?.stdout], document?.stderr).toEqual([0, ''])
  expect(document?.stderr).toMatch(/^\d+ promises of /)
  expect(JSON.parse(readFileSync(join(folder, 'verify.json'), 'utf8'))).toMatchObject({
    result: 'kept',
    broken: 0,
  })
  for (const each of [text, document]) expect(`${each?.stdout}${each?.stderr}`).not.toContain(PASSWORD)
})
