import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { ENV, MAIN, prepareSite } from '../process/serve.ts'
import { fencesOf, replaceIn, shellBlock } from '../support/pages.ts'
import { needs, run } from '../support/tools.ts'

const PAGE = 'docs/issuing.md'

it('H292 the commands of docs/issuing.md make the files that Prometheus and a probe read', async () => {
  needs('curl')
  const site = await prepareSite({ transport: 'tls' })
  const sidecar = await site.serveHere()
  const folder = join(site.directory, 'machine')
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const program = join(folder, 'bin', 'postern')
  writeFileSync(
    program,
    `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@" --config '${site.configFile}'\n`,
  )
  chmodSync(program, 0o755)
  const type = async (block: string): Promise<string> => {
    const env = { ...ENV, PATH: `${join(folder, 'bin')}:${ENV.PATH}` }
    const { code, stdout, stderr } = await run('sh', ['-euc', block], { cwd: folder, env })
    if (code !== 0) throw new Error(stderr)
    return stdout
  }

  const [token = '', ...status] = (await type(shellBlock('docs/issuing.md', 'ticket 4711'))).split('\n')
  expect(await sidecar.use(token)).toBe(200)
  expect(status.join('\n')).toMatch(/ operator .* ticket 4711$/m)

  const file = join(folder, 'postern.token')
  const forPrometheus = replaceIn(
    shellBlock('docs/issuing.md', '/etc/prometheus/postern.token'),
    '/etc/prometheus/postern.token',
    `${file}.new`,
  )
  await type(replaceIn(forPrometheus, '-g prometheus ', ''))
  expect(statSync(`${file}.new`).mode & 0o777).toBe(0o640)
  expect(await sidecar.use(readFileSync(`${file}.new`, 'utf8').trimEnd())).toBe(200)

  const { listen } = JSON.parse(readFileSync(site.configFile, 'utf8'))
  const probe = replaceIn(
    shellBlock('docs/issuing.md', 'probe.header'),
    '/var/lib/postern/tls/cert.pem',
    listen.tls.cert,
  )
  await type(replaceIn(probe, 'https://localhost:8443', sidecar.url))
  expect(site.device.requests.at(-1)).toMatchObject({ method: 'GET', target: '/status' })
  expect(statSync(join(folder, 'probe.header')).mode & 0o777).toBe(0o600)
})

it('H292 the example of docs/issuing.md is a configuration of Prometheus', async () => {
  const [example] = fencesOf(PAGE).filter(({ language }) => language === 'yml')
  expect(parse(example?.text ?? '')).toMatchObject({ scrape_configs: [{ scheme: 'https' }] })
  needs('promtool')
  const site = await prepareSite()
  const [file, token] = ['prometheus.yml', 'token'].map((name) => join(site.directory, name))
  writeFileSync(token ?? '', 'token\n')
  const text = (example?.text ?? '').replace(/\/etc\/prometheus\/[\w.-]+/g, token ?? '')
  writeFileSync(file ?? '', text)
  expect(await run('promtool', ['check', 'config', '--syntax-only', file ?? ''])).toMatchObject({ code: 0 })
})
