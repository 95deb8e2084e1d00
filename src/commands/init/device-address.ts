import { resolve } from 'node:path'
import { parseUpstreamUrl } from '../../config/address.ts'
import { tlsWith } from '../../config/first-configuration.ts'
import { loadConfig } from '../../config/load.ts'
import { upstreamTarget } from '../../forward/settings.ts'
import { SetupError } from '../../system/setup-error.ts'
import { judgeDevice } from '../check/device-checks.ts'
import { describeResult, runCheck } from '../check/finding.ts'
import type { Questions } from '../prompt.ts'

/** Where the device is, and the value of `upstream.tls` as YAML. */
export interface DeviceAddress {
  readonly url: string
  readonly tls?: string | undefined
}

/** The address of `--url` and the file of `--device-ca`. Throws `SetupError` if the address is none. */
export function addressFromFlags(url: string, ca: string | undefined): DeviceAddress {
  const parsed = parseUpstreamUrl(url)
  if ('problem' in parsed) throw new SetupError(`--url: ${parsed.problem}`)
  return { url, tls: ca === undefined ? undefined : tlsWith(resolve(ca)) }
}

/** Requests a page of the device. `tls` of the result: the value of `upstream.tls` that makes it succeed. */
function tryDevice({ url, tls }: DeviceAddress): ReturnType<typeof runCheck> {
  const trust = tls === undefined ? [] : [`upstream.tls=${tls}`]
  const { upstream } = loadConfig({ sets: [`upstream.url=${url}`, 'password.file=none', ...trust] })
  return runCheck({
    name: 'device',
    key: '--url',
    meaning: 'clients would get an error for every request but those for tokens',
    remedy: 'correct the address',
    run: async () => judgeDevice(await upstreamTarget(upstream, 'upstream'), upstream, 'upstream'),
  })
}

/** Tries an address without a terminal. Throws `SetupError` unless the device answers as it should. */
export async function requireDevice(address: DeviceAddress, say: (text: string) => void): Promise<void> {
  const { result, tls } = await tryDevice(address)
  say(describeResult(result))
  if (result.result === 'ok') return
  const trust =
    tls === undefined
      ? 'write the configuration nevertheless with --skip-checks'
      : `write the configuration with --skip-checks and add to its upstream: tls: ${tls}`
  throw new SetupError('nothing is written, because of the device', {
    exitCode: 1,
    remedy: `correct --url${tls === undefined ? '' : ', name the certificate of its authority with --device-ca'}, or ${trust}`,
  })
}

/**
 * Asks for the address, if there is none yet, and tries it, until the operator is content. Offers to write the value of `upstream.tls`
 * with which the device works.
 */
export async function askForDevice(
  given: DeviceAddress | undefined,
  questions: Questions,
): Promise<DeviceAddress> {
  let address = given
  for (;;) {
    address ??= { ...given, url: await askForAddress(questions) }
    questions.say(`Trying ${address.url} ...\n`)
    const { result, tls } = await questions.during(tryDevice(address))
    questions.say(describeResult(result))
    if (result.result === 'ok') return address
    const answer = await questions.ask(
      `${tls === undefined ? '' : `t: write tls: ${tls}. `}y: use the address anyway. n: enter another address. Or type it now [n]: `,
      'n',
    )
    if (/^y(?:es)?$/i.test(answer)) return address
    if (/^t$/i.test(answer)) {
      if (tls === undefined) questions.say('  There is nothing to write for TLS\n')
      else address = { url: address.url, tls }
    } else {
      const url = /^no?$/i.test(answer) ? undefined : completed(answer, questions)
      address = url === undefined ? undefined : { ...given, url }
    }
  }
}

async function askForAddress(questions: Questions): Promise<string> {
  for (;;) {
    const url = completed(await questions.ask('Address of the device, such as http://192.0.2.7: '), questions)
    if (url !== undefined) return url
  }
}

/** The address as a URL: without a scheme, http is meant. Says what is wrong with any other text. */
function completed(answer: string, questions: Questions): string | undefined {
  const url = /^[\w.[\]:-]+$/.test(answer) && !/^https?:/.test(answer) ? `http://${answer}` : answer
  const parsed = parseUpstreamUrl(url)
  if (!('problem' in parsed)) return url
  questions.say(`  ${parsed.problem}\n`)
  return undefined
}
