import type { Departure, Report, Verdict } from '../verdict.ts'
import { firstSentence } from './lines.ts'
import { printable } from './style.ts'
import type { Times } from './times.ts'

/**
 * A report in JUnit's XML, as Jenkins, GitLab and the actions of GitHub read it: one `testsuite`, and a `testcase` for each promise. A
 * broken promise is a `failure`, one that cannot be tested is `skipped`. The `time` of a promise is that since the decision before.
 */
export function junitXml(report: Report, times: Times): string {
  const { promises, seconds, startedAt, url, version, tokens } = report
  const count = (result: Verdict['result']): number =>
    promises.filter((verdict) => verdict.result === result).length
  const totals = {
    tests: promises.length,
    failures: count('broken'),
    errors: 0,
    skipped: count('not testable'),
  }
  return suite({ ...totals, time: seconds.toFixed(3), timestamp: startedAt }, [
    element('properties', {}, [
      element('property', { name: 'url', value: url }),
      element('property', { name: 'version', value: version }),
      element('property', { name: 'tokens', value: tokens }),
    ]),
    ...promises.map((verdict) => testcase(verdict, times.get(verdict.id) ?? 0)),
  ])
}

/** The same for a run that could not take place: one `testcase` with an `error`. `problems` are lines for a person. */
export function junitError(problems: readonly string[]): string {
  const [message = ''] = problems
  const error = element('error', { message }, [escaped(lines(problems))])
  return suite({ tests: 1, failures: 0, errors: 1, skipped: 0, time: '0.000' }, [
    element('testcase', { classname: CLASS, name: 'the run', time: '0.000' }, [error]),
  ])
}

const CLASS = 'postern.verify'

type Attributes = Readonly<Record<string, string | number>>

function suite(attributes: Attributes, children: readonly string[]): string {
  const { timestamp: _, ...totals } = attributes
  const inner = element('testsuite', { name: 'postern verify', ...attributes }, children)
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', totals, [inner])}\n`
}

function testcase(verdict: Verdict, seconds: number): string {
  const { id, result, departures, notes } = verdict
  const attributes = { classname: CLASS, name: `${id} ${firstSentence(verdict)}`, time: seconds.toFixed(3) }
  const output = notes.length === 0 ? [] : [element('system-out', {}, [escaped(lines(notes))])]
  switch (result) {
    case 'kept':
      return element('testcase', attributes, output)
    case 'not testable':
      return element('testcase', attributes, [element('skipped', { message: notes.join('; ') })])
    case 'broken':
      return element('testcase', attributes, [failure(verdict, departures), ...output])
  }
}

function failure({ sentence, clause }: Verdict, departures: readonly Departure[]): string {
  const [first] = departures
  const message = first === undefined ? sentence : `${first.came}; wanted: ${first.wanted}`
  const texts = departures.map((each) =>
    lines([
      `sent    ${each.sent}`,
      `came    ${each.came}`,
      `wanted  ${each.wanted}`,
      `clause  ${each.clause}`,
    ]),
  )
  const text = [lines([sentence, `(${clause})`]), ...texts].join('\n\n')
  return element('failure', { message, type: 'broken' }, [escaped(text)])
}

function lines(texts: readonly string[]): string {
  return texts.map(printable).join('\n')
}

function element(name: string, attributes: Attributes, children: readonly string[] = []): string {
  const pairs = Object.entries(attributes).map(
    ([key, value]) => ` ${key}="${escaped(printable(String(value)))}"`,
  )
  const start = `<${name}${pairs.join('')}`
  return children.length === 0 ? `${start}/>` : `${start}>${children.join('')}</${name}>`
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** XML 1.0 §2.2 forbids some characters even as references; `printable` has replaced the others. */
function escaped(text: string): string {
  return text
    .replace(/[&<>"]/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\ufffe\uffff]/g, '\ufffd')
}
