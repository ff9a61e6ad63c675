// `hawser completion <shell>` prints a completion script. The scripts only run `hawser __complete` and show
// what it prints; complete.ts decides. No script lets the shell evaluate a name as code, as bash's `compgen
// -W` does.
import type { Command } from '../command.ts'
import { complete } from '../complete.ts'
import { safeText } from '../safe-text.ts'

const scripts = {
  bash: `# hawser: completions for bash. In ~/.bashrc: source <(hawser completion bash)
_hawser() {
  local typed=\${COMP_LINE:0:COMP_POINT} words current front line
  # Bash breaks words at @ and : as well, and replaces only $2, what is behind them; we do not.
  read -ra words <<< "$typed"
  [[ $typed == *[[:space:]] ]] && words+=('')
  current=\${words[\${#words[@]}-1]}
  front=\${current%"$2"}
  COMPREPLY=()
  while IFS= read -r line; do
    line=\${line%%$'\\t'*}
    COMPREPLY+=("\${line#"$front"}")
  done < <("\${words[0]}" __complete "\${words[@]:1}" 2>/dev/null)
  [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == *: ]] && compopt -o nospace
}
complete -o default -F _hawser hawser
`,
  zsh: `#compdef hawser
# hawser: completions for zsh. In ~/.zshrc, behind compinit: source <(hawser completion zsh)
_hawser() {
  local -a found
  local line word
  while IFS= read -r line; do
    word=\${line%%$'\\t'*}
    found+=("\${word//:/\\\\:}:\${line#*$'\\t'}")
  done < <("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( $#found )); then _describe hawser found; else _files; fi
}
compdef _hawser hawser
`,
  fish: `# hawser: completions for fish. Once: hawser completion fish > ~/.config/fish/completions/hawser.fish
function __hawser_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l found (command $words[1] __complete $words[2..-1] 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c hawser -f -a '(__hawser_complete)'
`,
} as const

export const completion: Command = {
  words: ['completion'],
  summary: 'Prints a script that makes your shell complete commands, options and names of devices.',
  arguments: [{ name: 'shell', doc: 'bash, zsh or fish', choices: Object.keys(scripts) }],
  details: [
    'bash: source <(hawser completion bash)     zsh: source <(hawser completion zsh)     fish: hawser completion fish | source',
  ],
  async run(given) {
    process.stdout.write(scripts[given.words[0] as keyof typeof scripts])
    return Promise.resolve(undefined)
  },
}

/** Completes the last word of the line, which may be empty; the scripts run this command with all words. */
export function completer(commands: () => readonly Command[]): Command {
  return {
    words: ['__complete'],
    summary: 'Prints completions of the last word.',
    arguments: [{ name: 'word', doc: 'the words so far', optional: true, many: true }],
    raw: true,
    hidden: true,
    async run(given, context) {
      const found = await complete(commands(), given.words, context)
      process.stdout.write(found.map(({ word, doc }) => `${word}\t${safeText(doc)}\n`).join(''))
      return undefined
    },
  }
}
