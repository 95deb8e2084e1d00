import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { Agent, request } from 'node:https'
import { dirname, join } from 'node:path'
import process from 'node:process'

// A program of its own, in the network of a machine: the device, or many clients at once. The last line that it prints is its report, as JSON.

interface Tokens {
  readonly access: string
  readonly refresh: string
}

interface Reply {
  readonly status: number
  readonly body: string
}

/** What clients have seen: how often each status, and how often a connection failed. */
interface Seen {
  readonly statuses: Record<string, number>
  failures: number
}

/** How many clients ask at the same time. */
const CLIENTS = 4

const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS, rejectUnauthorized: false })

/** Rejects if the connection fails. */
function ask(path: string, headers: Record<string, string>, form?: Record<string, string>): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const body = form === undefined ? undefined : new URLSearchParams(form).toString()
  const fields =
    body === undefined
      ? headers
      : {
          ...headers,
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': Buffer.byteLength(body),
        }
  const method = body === undefined ? 'GET' : 'POST'
  const sent = request(
    { host: '127.0.0.1', port: 8443, path, method, headers: fields, agent },
    (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
      )
    },
  )
  sent.on('error', reject)
  sent.end(body)
  return promise
}

const use = ({ access }: Tokens): Promise<Reply> => ask('/', { authorization: `Bearer ${access}` })

const token = async (form: Record<string, string>): Promise<Tokens> => {
  const { status, body } = await ask('/oauth/token', {}, form)
  if (status !== 200) throw new Error(`${status} ${body}`)
  const { access_token, refresh_token } = JSON.parse(body)
  return { access: access_token, refresh: refresh_token }
}

/** Runs `each` for all items, some at a time. */
async function forAll<Item, Result>(
  items: readonly Item[],
  each: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const at = next++
      results[at] = await each(items[at] as Item) // `at` is below the length
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, work))
  return results
}

/** Uses the tokens in turn until SIGTERM. A failed connection is tried again with the same token. */
async function poll(tokens: readonly Tokens[]): Promise<Seen> {
  const seen: Seen = { statuses: {}, failures: 0 }
  let goesOn = true
  process.once('SIGTERM', () => {
    goesOn = false
  })
  let next = 0
  const work = async (): Promise<void> => {
    while (goesOn) {
      const reply = await use(tokens[next++ % tokens.length] as Tokens).catch(() => undefined) // not empty
      if (reply === undefined) seen.failures += 1
      else seen.statuses[reply.status] = (seen.statuses[reply.status] ?? 0) + 1
      // Four clients that poll leave a busy machine time for its upgrade.
      await new Promise((resume) => setTimeout(resume, 20))
    }
  }
  process.stdout.write('polling\n')
  await Promise.all(Array.from({ length: 4 }, work))
  return seen
}

function serveDevice(): void {
  const device = createServer((incoming, response) => {
    incoming.resume()
    response.end('device\n')
  })
  device.listen(8080, '127.0.0.1', () => process.stdout.write('listening\n'))
}

const [task = '', file = '', ...rest] = process.argv.slice(2)
const read = (): readonly Tokens[] => JSON.parse(readFileSync(file, 'utf8'))
const report = (found: unknown): void => void process.stdout.write(`${JSON.stringify(found)}\n`)
const count = (statuses: readonly number[]): Record<string, number> =>
  Object.fromEntries([...Map.groupBy(statuses, (each) => each)].map(([key, { length }]) => [key, length]))

if (task === 'device') serveDevice()
if (task === 'log-in') {
  const [password = '', number = '1'] = rest
  const all = await forAll(Array.from({ length: Number(number) }), () =>
    token({ grant_type: 'password', password }),
  )
  writeFileSync(file, JSON.stringify(all))
  report(all.length)
}
if (task === 'choose') {
  const [target = ''] = rest
  const some = read().filter((_, at) => at % 10 === 0)
  writeFileSync(join(dirname(file), target), JSON.stringify(some))
  report(some.length)
}
if (task === 'use') report(count((await forAll(read(), use)).map(({ status }) => status)))
if (task === 'refresh') {
  const all = await forAll(read(), ({ refresh }) =>
    token({ grant_type: 'refresh_token', refresh_token: refresh }),
  )
  writeFileSync(file, JSON.stringify(all))
  report(all.length)
}
if (task === 'poll') report(await poll(read()))
agent.destroy()
