import { parseUpstreamUrl } from '../../config/address.ts'
import { loadConfig } from '../../config/load.ts'
import { SetupError } from '../../system/setup-error.ts'
import { deviceChecks } from '../check/device-checks.ts'
import { type CheckResult, runCheck } from '../check/finding.ts'
import { text } from '../check.ts'
import type { Questions } from './questions.ts'

/** The address of `--url`. Throws `SetupError` if it is none. */
export function addressFromFlag(url: string): string {
  const parsed = parseUpstreamUrl(url)
  if ('problem' in parsed) throw new SetupError(`--url: ${parsed.problem}`)
  return url
}

/** Requests a page of the device. */
async function tryDevice(url: string): Promise<CheckResult> {
  const sets = [`upstream.url=${url}`, 'password.file=none']
  const [, device] = deviceChecks(loadConfig({ env: {}, sets }))
  if (device === undefined) throw new TypeError('there is no check of the device')
  return (await runCheck(device)).result
}

/** Tries an address without a terminal. Throws `SetupError` unless the device answers as it should. */
export async function requireDevice(url: string, say: (text: string) => void): Promise<void> {
  const result = await tryDevice(url)
  say(text(result))
  if (result.result === 'ok') return
  throw new SetupError('nothing is written, because of the device', {
    exitCode: 1,
    remedy: 'correct --url, or write the configuration nevertheless with --skip-checks',
  })
}

/** Asks for the address, if there is none yet, and tries it, until the operator is content. */
export async function askForDevice(given: string | undefined, questions: Questions): Promise<string> {
  let url = given
  for (;;) {
    url ??= await askForAddress(questions)
    questions.say(`Trying ${url} ...\n`)
    const result = await questions.during(tryDevice(url))
    questions.say(text(result))
    if (result.result === 'ok') return url
    const answer = await questions.ask(
      'Go on with this address (y), or try another one (type it)? [n]: ',
      'n',
    )
    if (/^y(?:es)?$/i.test(answer)) return url
    url = /^no?$/i.test(answer) ? undefined : completed(answer, questions)
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
