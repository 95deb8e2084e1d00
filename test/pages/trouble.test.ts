import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { prepareSite, type Serving, type Site } from '../process/serve.ts'
import { fencesOf, readPage, shellBlock } from '../support/pages.ts'
import { startRedis } from '../support/redis.ts'
import { needs, run } from '../support/tools.ts'

/** The pages that somebody opens because something is wrong. */
const PAGES = ['operating', 'watching', 'fleet', 'sharing', 'devices'].map((name) => `docs/${name}.md`)

/** Lines above the first block: the heading, and what the page is about. */
const MOST_LINES_BEFORE = 9

it.each(PAGES)('%s begins with what to type', (page) => {
  const [before = '', ...others] = readPage(page).split(/^```/m)
  expect(others.length).toBeGreaterThan(0)
  expect(before.split('\n').length).toBeLessThanOrEqual(MOST_LINES_BEFORE)
  expect(before).not.toMatch(/^##/m)
  expect(fencesOf(page)[0]?.language).toMatch(/^(?:sh|yaml)$/)
})

// The sidecar serves this page, and its HTML has no blocks. `alerts.test.ts` runs the command.
it('docs/alerts.md begins with what to type', () => {
  expect(readPage('docs/alerts.md')).toMatch(/^# Alerts\n\nType `postern status`/)
})

/** Runs each line of a block by itself, as in a fresh shell on the machine of this sidecar. Returns what it printed. */
async function typeOn(site: Site, sidecar: Serving, block: string): Promise<readonly string[]> {
  const programs = join(site.directory, 'programs')
  mkdirSync(programs)
  const log = join(site.directory, 'log')
  writeFileSync(log, sidecar.lines.map((line) => `${line}\n`).join(''))
  const program = (name: string, line: string): void =>
    writeFileSync(join(programs, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 })
  program('journalctl', `[ "$1 $2" = '-u postern' ] && cat '${log}'`)
  program('postern', `exec '${process.execPath}' '${join(import.meta.dirname, '../../src/main.ts')}' "$@"`)
  const PATH = [programs, process.env.PATH].join(delimiter)
  const env = { PATH, HOME: site.directory, POSTERN_CONFIG: site.configFile }
  const printed: string[] = []
  for (const line of block.trim().split('\n')) {
    const here = line.replace('http://127.0.0.1:9464', sidecar.adminUrl)
    const { code, stdout, stderr } = await run('bash', ['-o', 'pipefail', '-c', here], { env })
    expect([line, code, stderr]).toEqual([line, 0, ''])
    printed.push(stdout)
  }
  return printed
}

describe('what the pages say to type first shows what is wrong', () => {
  const alone = [
    ['docs/operating.md', shellBlock('docs/operating.md', 'postern explain')],
    ['docs/watching.md', shellBlock('docs/watching.md', 'postern status')],
    ['docs/devices.md', shellBlock('docs/devices.md', 'postern check')],
  ] as const

  it.each(alone)('%s', async (_page, block) => {
    needs('bash')
    needs('curl')
    const site = await prepareSite({ config: { enforce: false } })
    const sidecar = await site.serveHere()
    await sidecar.request({ path: '/refused' })
    const printed = (await typeOn(site, sidecar, block)).join('')
    expect(printed).toMatch(block.includes('status') ? /ObservingOnly|enforce/ : /device: \S+ answered/)
  })

  it('docs/fleet.md', async () => {
    needs('bash')
    needs('curl')
    needs('redis-server')
    const redis = await startRedis()
    const site = await prepareSite({ config: { tokens: { store: `valkey://${redis.at}` } } })
    const sidecar = await site.serveHere()
    const [ready = '', metrics = ''] = await typeOn(
      site,
      sidecar,
      shellBlock('docs/fleet.md', '^postern_store_up'),
    )
    expect(ready).toContain('ready')
    expect(metrics).toContain('postern_store_up 1')
  })
})
