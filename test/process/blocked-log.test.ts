import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { startRawDevice } from '../support/raw-device.ts'
import { ENV, MAIN } from './serve.ts'

/** A sidecar whose log is on a full disk. */
function serveToFull(config: { readonly listen: string; readonly admin: string }): ChildProcess {
  const folder = temporaryDirectory()
  const file = join(folder, 'password')
  const object = {
    listen: { address: config.listen, tls: 'off' },
    admin: { address: config.admin },
    upstream: { url: 'http://127.0.0.1:9' },
    password: { file },
    state_dir: join(folder, 'state'),
  }
  writeFileSync(file, 'x\n', { mode: 0o600 })
  writeFileSync(join(folder, 'postern.yaml'), JSON.stringify(object))
  const command = [process.execPath, MAIN, 'serve', '--config', join(folder, 'postern.yaml')]
  const child = spawn('sh', ['-c', 'exec "$@" > /dev/full', 'sh', ...command], { env: ENV, stdio: 'ignore' })
  closeLater(() => {
    child.kill('SIGKILL')
  })
  return child
}

it('SIGTERM stops a sidecar whose log is on a full disk', async () => {
  const port = await unusedPort()
  const child = serveToFull({ listen: '127.0.0.1:0', admin: `127.0.0.1:${port}` })
  const exit = once(child, 'exit')
  const ready = (): Promise<number> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status,
      () => 0,
    )
  await expect.poll(ready).toBe(200)
  child.kill('SIGTERM')
  expect((await exit)[0]).toBe(0)
})

it('a start that fails ends, though its log is on a full disk', async () => {
  const taken = new URL((await startRawDevice(() => {})).url).host
  expect((await once(serveToFull({ listen: taken, admin: 'off' }), 'exit'))[0]).toBe(1)
})
