import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import { ENV, MAIN } from './serve.ts'

it('SIGTERM stops a sidecar whose log is on a full disk', async () => {
  const folder = temporaryDirectory()
  const port = await unusedPort()
  const config = {
    listen: { address: '127.0.0.1:0', tls: 'off' },
    admin: { address: `127.0.0.1:${port}` },
    upstream: { url: 'http://127.0.0.1:9' },
    password: { file: join(folder, 'password') },
    state_dir: join(folder, 'state'),
  }
  writeFileSync(config.password.file, 'x\n', { mode: 0o600 })
  writeFileSync(join(folder, 'postern.yaml'), JSON.stringify(config))
  const command = [process.execPath, MAIN, 'serve', '--config', join(folder, 'postern.yaml')]
  const child = spawn('sh', ['-c', 'exec "$@" > /dev/full', 'sh', ...command], { env: ENV, stdio: 'ignore' })
  const exit = once(child, 'exit')
  closeLater(() => {
    child.kill('SIGKILL')
  })
  const ready = (): Promise<number> =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ status }) => status,
      () => 0,
    )
  await expect.poll(ready).toBe(200)
  child.kill('SIGTERM')
  expect((await exit)[0]).toBe(0)
})
