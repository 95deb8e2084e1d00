import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { nginxVersion } from '../../bench/peers/nginx-process.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { unusedPort } from '../support/raw.ts'
import type { Seen, WitnessDevice } from './device.ts'

export interface NginxDevice extends WitnessDevice {
  /**
   * nginx refuses an invalid target before it reads the fields, so its log line lacks the client. Removes up to `count` of these
   * requests from the strays if `sent` contains their method and target, and returns them.
   */
  claim(count: number, sent: string): readonly Seen[]
}

/** Attempts to start nginx: another process may take the free port first. */
const MAX_STARTS = 5

/** Starts nginx as the device. Its access log is the record of requests. */
export async function startNginxDevice(): Promise<NginxDevice> {
  if ((await nginxVersion()) === undefined) throw new Error('nginx is not on the PATH')
  for (let start = 1; start <= MAX_STARTS; start += 1) {
    const device = await tryNginx()
    if (device !== undefined) return device
  }
  throw new Error(`nginx exited ${MAX_STARTS} times before its first response`)
}

/** Resolves with undefined if nginx exits before its first response. */
async function tryNginx(): Promise<NginxDevice | undefined> {
  const folder = temporaryDirectory()
  const port = await unusedPort()
  const log = join(folder, 'access.log')
  const scratch = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  )
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${join(folder, 'pid')}; error_log /dev/null;
events { worker_connections 512; }
http {
  ${scratch.join(' ')}
  log_format witness escape=json '["$http_x_forwarded_for","$request_method","$request_uri","$request"]';
  access_log ${log} witness;
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000;
    location / { return 200 "$request_method $request_uri"; }
  }
}
`,
  )
  const child = spawn('nginx', ['-e', '/dev/null', '-c', join(folder, 'nginx.conf')], {
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  await once(child, 'spawn')
  closeLater(async () => {
    child.kill('SIGTERM')
    await exited
  })
  const url = `http://127.0.0.1:${port}`
  while (
    child.exitCode === null &&
    // The field names a client: nginx writes the log line only after the response.
    !(await fetch(url, { headers: { 'X-Forwarded-For': 'start' } }).then(
      () => true,
      () => false,
    ))
  )
    await delay(20)
  // nginx writes a log line after the response. This one belongs to no case.
  while (child.exitCode === null && readFileSync(log).length === 0) await delay(5)
  if (child.exitCode !== null) return undefined

  const seen = new Map<string, Seen[]>()
  let strays: string[] = []
  let read = readFileSync(log, 'latin1').length
  function readNewLines(): void {
    const text = readFileSync(log, 'latin1')
    const end = text.lastIndexOf('\n') + 1
    for (const line of text.slice(read, end).split('\n').filter(Boolean)) {
      const [client = '', method = '', target = '', request = ''] = JSON.parse(line)
      if (client === '') strays.push(request)
      else seen.set(client, [...(seen.get(client) ?? []), { method, target }])
    }
    read = end
  }
  return {
    url,
    seenFrom(client) {
      readNewLines()
      return seen.get(client) ?? []
    },
    strays() {
      readNewLines()
      return strays
    },
    claim(count, sent) {
      readNewLines()
      const claimed: Seen[] = []
      strays = strays.filter((request) => {
        const [method = '', target = ''] = request.split(' ')
        const mine = TARGET_REFUSED.test(request) && sent.includes(method) && sent.includes(target)
        if (!mine || claimed.length === count) return true
        claimed.push({ method, target })
        return false
      })
      return claimed
    },
    forget() {
      readNewLines()
      seen.clear()
      strays = []
    },
  }
}

/** A target with an invalid escape, a NUL, or a path above the root. */
const TARGET_REFUSED = /^[A-Z-]+ \S*(?:%(?![0-9A-Fa-f]{2})|%00|\.\.|%2e)\S* HTTP\/1\.1$/i
