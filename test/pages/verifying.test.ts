import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { DOCUMENTED_LIMITS } from '../../src/verify/options.ts'
import { planOf } from '../../src/verify/run.ts'
import { ENV, MAIN } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { realClock } from '../support/clock.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { PATIENCE } from '../support/running-test.ts'
import { PASSWORD, startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'
import { readTree } from '../support/source-tree.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, run } from '../support/tools.ts'
import { idsOf, movedTime, runOptions, runVerify } from '../verify/a-run.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/verifying.md'), 'utf8')

/** The rows of the table with this head: the text of each cell. */
function rowsBelow(head: string): readonly (readonly string[])[] {
  const [, rest = ''] = page.split(`${head}\n`)
  const [, ...rows] = rest.split('\n\n')[0]?.split('\n') ?? []
  return rows.map((row) => row.split('|').map((cell) => cell.trim()))
}

/** Windows that a busy machine uses up in time, with the documented numbers: fewer would make a run wait more often. */
const LIMITS = { api: { window: '8s' }, oauth: { window: '8s' } }
const FLAGS = '--api-limit 60/8 --oauth-limit 30/8 --flood 1 --connections 4'

it(
  'the commands of docs/verifying.md ask for a password and verify Postern',
  async () => {
    for (const tool of ['script', 'sh']) needs(tool)
    const start = (): Promise<TestSidecar> =>
      startSidecar({
        transport: 'tls',
        clock: realClock(),
        documentedLimits: true,
        config: { listen: { tls: 'auto' }, oauth: { revocation_path: '/oauth/revoke' }, limits: LIMITS },
      })
    const folder = temporaryDirectory()
    const program = `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@" ${FLAGS}\n`
    writeFileSync(join(folder, 'postern'), program, { mode: 0o755 })
    const env = { ...ENV, PATH: [folder, process.env.PATH].join(delimiter) }

    const ask = shellBlock('docs/verifying.md', 'stty -echo')
    const asked = await runOnTerminal(['sh', '-c', ask], { env, cwd: folder }, [
      'Password: ',
      `${PASSWORD}\r`,
    ])
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
        return run('sh', ['-ec', commands], { env, cwd: folder, timeout: 10 * PATIENCE })
      }),
    )
    expect([text?.code, text?.stdout], text?.stderr).toEqual([0, expect.stringContaining('0 broken')])
    expect(
      text?.stdout.match(/^\d+ promises of the documented API, checked from outside at /gm),
    ).toHaveLength(3)
    expect(text?.stdout.match(/^\d+ kept, 0 broken, \d+ not testable; \d+ requests in /gm)).toHaveLength(2)
    expect([document?.code, document?.stdout], document?.stderr).toEqual([0, ''])
    expect(document?.stderr).toMatch(/^\d+ promises of /)
    expect(JSON.parse(readFileSync(join(folder, 'verify.json'), 'utf8'))).toMatchObject({
      result: 'kept',
      broken: 0,
    })
    for (const each of [text, document]) expect(`${each?.stdout}${each?.stderr}`).not.toContain(PASSWORD)
  },
  15 * PATIENCE,
)

/** Windows that outlast a quick run. */
const DOCUMENTED = { api: { requests: 60, window: '60s' }, oauth: { requests: 30, window: '60s' } }

/** The settings of Postern in docs/verifying.md with which it departs from the documented API. */
const SETTINGS: readonly (readonly [row: string, config: YamlPart])[] = [
  ['status_codes: http', { status_codes: 'http' }],
  ['tokens.access_lifetime: 2h', { tokens: { access_lifetime: '2h' } }],
  ['public_paths', { public_paths: ['/api/status'] }],
  ['enforce: false', { enforce: false }],
  ['limits.api.requests: 50', { limits: { ...DOCUMENTED, api: { requests: 50 } } }],
]

const idsIn = (text: string): readonly string[] => text.match(/[CH]\d+/g) ?? []

it('docs/verifying.md names the settings of Postern with which it departs from the documented API', async () => {
  const rows = rowsBelow('| setting | broken |')
  expect(rows).toHaveLength(SETTINGS.length)
  const runs = SETTINGS.map(async ([setting, config]) => {
    const [, , broken = ''] =
      rows.find(([, cell]) => cell?.startsWith(`\`${setting}`)) ?? expect.fail(setting)
    // Both sides have one time.
    const time = movedTime()
    const sidecar = await startSidecar({ clock: time, config: { limits: DOCUMENTED, ...config } })
    const { report } = await runVerify(
      runOptions(sidecar.url, PASSWORD, { limits: DOCUMENTED_LIMITS, quick: true }),
      time,
    )
    const [always = '', often = ''] = (broken.split(':')[0] ?? '').split(', and often ')
    const found = idsOf(report, 'broken')
    // A quick run has no floods.
    expect(found, setting).toEqual(expect.arrayContaining(idsIn(always).filter((id) => id !== 'H125')))
    expect([...idsIn(always), ...idsIn(often)], setting).toEqual(expect.arrayContaining(found))
  })
  await Promise.all(runs)
})

it('docs/verifying.md names every section of the device API that a report cites', () => {
  const named = new Set(
    rowsBelow('| section | what it says |').flatMap(([, sections = '']) => sections.split(', ')),
  )
  const texts = [...readTree(root, 'src/verify').values()].join('\n')
  const cited = [...texts.matchAll(/device API ((?:(?:, | and )?§[\d.]*\d)+)/g)].flatMap(
    ([, sections = '']) => sections.match(/§[\d.]*\d/g) ?? [],
  )
  expect(new Set(cited)).toEqual(named)
})

it('docs/verifying.md names every key of the plan', () => {
  const keys = rowsBelow('| key of `plan` | value |').flatMap(([, cell = '']) => cell.match(/\w+/g) ?? [])
  expect(keys.sort()).toEqual(Object.keys(planOf(runOptions('https://device.example', PASSWORD))).sort())
})
