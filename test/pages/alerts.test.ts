import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { panelsOf, ROOT, readDashboard } from '../grafana/dashboard.ts'
import { prepareSite, type Serving, type Site } from '../process/serve.ts'
import { startDevice } from '../support/device.ts'
import { readPage } from '../support/pages.ts'
import { until } from '../support/redis.ts'
import { needs, run } from '../support/tools.ts'

const page = readPage('docs/alerts.md')
const codes = [...new Set([...page.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code))]

/** Commands that need what a test does not have: a service manager, a kernel that killed a process, the machine of a client. */
const NOT_RUN = [
  'docker exec postern',
  'docker logs postern',
  'usermod -U',
  'chage -E -1',
  'promtool check config prometheus.yml',
  'systemctl status postern',
  'systemctl start postern',
  'systemctl restart postern',
  'journalctl -k | grep -i oom',
  // `test/measure/wall.test.ts` holds these words: they need a device that breaks.
  "journalctl -u postern -o cat | grep 'broke the device'",
  'openssl s_client -connect HOST:8443',
  "ss -tn state established '( sport = :8443 )'",
]
const commands = codes.filter(
  (code) => /^(?:[a-z]+ [^=]|\w+ .*\|)/.test(code) && !NOT_RUN.includes(code) && !code.startsWith('rate('),
)

let site: Site
let sidecar: Serving
/** Programs that stand in for those of a machine with the Debian package. */
let programs: string

/** A sidecar that has had each fault that a command looks for in the log. */
beforeAll(async () => {
  const device = await startDevice((request, response) => {
    if (request.url === '/cut') request.socket.destroy()
    else response.end()
  })
  site = await prepareSite({ device, transport: 'tls' })
  mkdirSync(site.stateDir, { recursive: true, mode: 0o700 })
  writeFileSync(join(site.stateDir, 'tokens.db'), 'not a database'.repeat(1_000), { mode: 0o600 })
  sidecar = await site.serveHere()
  await sidecar.login('wrong')
  const { access_token: token } = await sidecar.grant()
  await sidecar.request({ path: '/cut', token })
  await until(async () => sidecar.lines.filter((line) => line.includes('"refusal"')).length === 2)

  programs = join(site.directory, 'programs')
  mkdirSync(programs)
  const log = join(site.directory, 'log')
  writeFileSync(log, sidecar.lines.map((line) => `${line}\n`).join(''))
  const program = (name: string, line: string): void =>
    writeFileSync(join(programs, name), `#!/bin/sh\n${line}\n`, { mode: 0o755 })
  program('journalctl', `[ "$1 $2" = '-u postern' ] && cat '${log}'`)
  program('postern', `exec '${process.execPath}' '${join(ROOT, 'src/main.ts')}' "$@"`)
})

describe('docs/alerts.md, against a sidecar with these faults', () => {
  it.each(commands)('H165 finds something: %s', async (command) => {
    needs('bash')
    needs('curl')
    const here = command
      .replace('http://127.0.0.1:9464', sidecar.adminUrl)
      .replace('/var/lib/postern', site.stateDir)
    const env = {
      PATH: [programs, process.env.PATH].join(delimiter),
      HOME: site.directory,
      POSTERN_CONFIG: site.configFile,
    }
    const { code, stdout, stderr } = await run('bash', ['-o', 'pipefail', '-c', here], { env })
    expect([code, stderr]).toEqual([0, ''])
    if (!command.includes('--quiet')) expect(stdout.trim()).not.toBe('')
    const [, alternatives = ''] = /\((\w[^)]*\|[^)]*)\)/.exec(command) ?? []
    for (const each of alternatives.split('|')) expect(stdout).toMatch(new RegExp(each))
  })

  it('H165 names only metrics, panels, keys and commands that exist', async () => {
    for (const code of NOT_RUN) expect(codes).toContain(code)
    expect(commands.length).toBeGreaterThan(10)
    const asked = codes.flatMap((code) => (code.startsWith('rate(') ? [/\((\w+)/.exec(code)?.[1] ?? ''] : []))
    for (const metric of asked) expect(await sidecar.metric(metric), metric).toBeGreaterThan(0)

    const titles = panelsOf(readDashboard()).map(({ title }) => title)
    const quoted = [...page.replaceAll(/`[^`]*`/g, '').matchAll(/"([A-Z][^"]+)"/g)].map(
      ([, title = '']) => title,
    )
    expect(quoted.length).toBeGreaterThan(2)
    expect(quoted.filter((title) => !titles.includes(title))).toEqual([])

    const reference = readPage('deploy/configuration.md')
    const keys = codes.filter(
      (code) => /^[a-z_]+(?:\.[a-z_]+)+$/.test(code) && !existsSync(join(ROOT, 'deploy', code)),
    )
    expect(keys.length).toBeGreaterThan(8)
    expect(
      keys.filter((key) => !new RegExp(`^### \`${key.replaceAll('.', '\\.')}[.\`]`, 'm').test(reference)),
    ).toEqual([])
  })
})
