import { describe, expect, it } from 'vitest'
import { isRunOf, readOptions, UsageError } from '../../bench/options.ts'
import { shellBlock } from '../support/pages.ts'

const KNOWN = ['limits', 'P1', 'P1f', 'P2', 'F1', 'F2']
const read = (...args: string[]): ReturnType<typeof readOptions> => readOptions(args, KNOWN)

describe('The command line of the bench', () => {
  it('by default measures everything, in three rounds', () => {
    expect(read()).toMatchObject({ only: undefined, strict: false, out: 'latest' })
    expect(read().effort).toEqual({ rounds: 3, seconds: 4, warmUpSeconds: 2, part: 1 })
  })

  it('with --quick reduces rounds and seconds that are not set', () => {
    expect(read('--quick').effort).toMatchObject({ rounds: 1, seconds: 1 })
    expect(read('--quick', '--rounds', '2').effort).toMatchObject({ rounds: 2, seconds: 1 })
  })

  it('with --floor measures only the floor, or the figures of --only', () => {
    expect(read('--floor')).toMatchObject({ only: ['P1f'], floor: true })
    expect(read('--floor', '--only', 'P1,P1f')).toMatchObject({ only: ['P1', 'P1f'], floor: true })
  })

  it('with --fleet measures only what sharing costs, or the figures of --only', () => {
    expect(read('--fleet')).toMatchObject({ only: ['F1', 'F2'] })
    expect(read('--fleet', '--floor').only).toEqual(['P1f', 'F1', 'F2'])
    expect(read('--fleet', '--only', 'P1').only).toEqual(['P1'])
  })

  it('reads every command of bench/README.md', () => {
    const commands = shellBlock('bench/README.md', 'npm run bench ').trim().split('\n')
    expect(commands.length).toBeGreaterThan(5)
    for (const command of commands) {
      const [, args = ''] = /^npm run bench(?: -- (.*?))?(?: +#.*)?$/.exec(command) ?? expect.fail(command)
      expect(readOptions(args.split(' ').filter(Boolean), [...KNOWN, 'P3', 'P11']), command).toBeDefined()
    }
  })

  it('measures what a page names if figures and peers are the same, at full length', () => {
    const isRun = (command: string, ...args: string[]): boolean => isRunOf(command, read(...args), KNOWN)
    expect(isRun('npm run bench -- --only P1', '--only', 'P1', '--rounds', '9')).toBe(true)
    expect(isRun('npm run bench -- --fleet', '--fleet')).toBe(true)
    expect(isRun('npm run bench -- --only P1 --peers postern', '--only=P1', '--peers=postern')).toBe(true)
    for (const other of [['--quick'], ['--source'], ['--node-flag=--a'], ['--peers', 'nginx']])
      expect(isRun('npm run bench -- --only P1', '--only', 'P1', ...other), other.join()).toBe(false)
    expect(isRun('npm run bench -- --only P1')).toBe(false)
    expect(isRun('npm run release', '--only', 'P1')).toBe(false)
  })

  it('accepts lists', () => {
    const options = read('--only', 'P1, P2', '--peers=postern,haproxy', '--node-flag=--a', '--node-flag=--b')
    expect(options).toMatchObject({
      only: ['P1', 'P2'],
      peers: ['postern', 'haproxy'],
      nodeFlags: ['--a', '--b'],
    })
  })

  it.for([
    [['--only', 'P1,P77'], 'no such figure: P77'],
    [['--rounds', '0'], '--rounds'],
    [['--seconds', '1.5'], '--seconds'],
    [['--out', '../elsewhere'], '--out'],
    [['--nonsense'], '--nonsense'],
    [['P1'], 'P1'],
  ] as const)('refuses %j', ([args, message]) => {
    expect(() => read(...args)).toThrow(UsageError)
    expect(() => read(...args)).toThrow(message)
  })
})
