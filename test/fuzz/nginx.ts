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
   * A target that nginx does not take is refused before it reads the fields, so its log does not tell whose it was.
   * Takes up to `count` of those out of the strays whose method and target stand in `sent`, and gives them.
   */
  claim(count: number, sent: string): readonly Seen[]
}

/** Another process may take the free port before nginx does. */
const MOST_STARTS = 5

/** nginx as the device, its access log as the witness. */
export async function startNginxDevice(): Promise<NginxDevice> {
  if ((await nginxVersion()) === undefined) throw new Error('nginx is not on the PATH')
  for (let start = 1; start <= MOST_STARTS; start += 1) {
    const device = await tryNginx()
    if (device !== undefined) return device
  }
  throw new Error(`nginx ended ${MOST_STARTS} times before it answered`)
}

/** Undefined where nginx ends before it answers. */
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
  const gone = once(child, 'exit')
  await once(child, 'spawn')
  closeLater(async () => {
    child.kill('SIGTERM')
    await gone
  })
  const url = `http://127.0.0.1:${port}`
  while (
    child.exitCode === null &&
    // Named like a client's, because nginx writes its log line when this has been answered already.
    !(await fetch(url, { headers: { 'X-Forwarded-For': 'start' } }).then(
      () => true,
      () => false,
    ))
  )
    await delay(20)
  // A log line is written when the answer has gone out already; this line is not of a case.
  while (child.exitCode === null && readFileSync(log).length === 0) await delay(5)
  if (child.exitCode !== null) return undefined

  const seen = new Map<string, Seen[]>()
  let strays: string[] = []
  let read = readFileSync(log, 'latin1').length
  function readOn(): void {
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
      readOn()
      return seen.get(client) ?? []
    },
    strays() {
      readOn()
      return strays
    },
    claim(count, sent) {
      readOn()
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
      readOn()
      seen.clear()
      strays = []
    },
  }
}

/** An escape that is none, a NUL, or a way out above the root. */
const TARGET_REFUSED = /^[A-Z-]+ \S*(?:%(?![0-9A-Fa-f]{2})|%00|\.\.|%2e)\S* HTTP\/1\.1$/i
