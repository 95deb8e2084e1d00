import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import { checkCommand } from '../../src/commands/check.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'

let directory: string
let password: string

beforeEach(() => {
  directory = temporaryDirectory()
  password = join(directory, 'password')
  writeFileSync(password, 'hunter2\n')
})

interface Checked {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function check(...set: readonly string[]): Promise<Checked> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const sets = [`password.file=${password}`, 'listen.tls=off', `state_dir=${directory}`, ...set]
  const [out, err] = [text(stdout), text(stderr)]
  const code = await checkCommand({ set: sets }, { stdout, stderr, env: {} })
  stdout.end()
  stderr.end()
  return { code, out: await out, err: await err }
}

describe('postern check', () => {
  it('prints the effective configuration without its secrets, tries what it names, and exits 0', async () => {
    const device = await startDevice()
    const { code, out } = await check(`upstream.url=${device.url}`, 'upstream.headers.X-Key=hunter2')
    expect(out).toContain(`url: ${device.url}`)
    expect(out).not.toContain('hunter2')
    expect(out).toMatch(/^ok {6}password source: readable$/m)
    expect(out).toMatch(/^ok {6}upstream headers: 1 set on every request$/m)
    expect(out).toContain(`ok      device: ${device.url} answered 200`)
    expect(code).toBe(0)
  })

  it('exits 1 and says which of them does not work', async () => {
    const url = `http://127.0.0.1:${await unusedPort()}`
    const { code, out } = await check(`upstream.url=${url}`, 'password.file=/nowhere')
    expect(out).toMatch(/^FAILED {2}password source: .*\/nowhere/m)
    expect(out).toMatch(/^FAILED {2}device: .+/m)
    expect(out).toMatch(/^ok {6}certificate: off/m)
    expect(code).toBe(1)
  })

  it('tries every service of the device', async () => {
    const [device, camera] = [await startDevice(), await startDevice()]
    const routes = [
      `upstream.routes./cam/.url=${camera.url}`,
      'upstream.routes./cam/.headers.X-Key.file=/nowhere',
      `upstream.routes./cam/.auth={basic: {user: eye, password: {file: ${password}}}}`,
    ]
    const { code, out } = await check(`upstream.url=${device.url}`, ...routes)
    expect(out).toContain(`ok      device of /cam/: ${camera.url} answered 200`)
    expect(out).toMatch(
      /^FAILED {2}upstream headers of \/cam\/: upstream.routes.\/cam\/.headers.X-Key: cannot read/m,
    )
    expect(code).toBe(1)
  })

  it('exits 1 with one line for each thing that is wrong with the configuration itself', async () => {
    const { code, out, err } = await check('upstream.url=ftp://x', 'limits.api.request=5')
    expect(out).toBe('')
    expect(err).toContain('upstream.url')
    expect(err).toContain('did you mean limits.api.requests?')
    expect(code).toBe(1)
  })
})
