// Which environment variables of a client reach a program on a device. Those for language and colours always
// do. A namespace may allow more, but never those that tell the loader, a shell, an interpreter or a tool
// what code to run, where its files are, or who the user is. The gateway enforces this; Hawser's own agent
// does as well.

const always = /^(LANG|LC_[A-Z_]{1,32}|COLORTERM|TERM_PROGRAM|TERM_PROGRAM_VERSION)$/

/** Exceptions from `never`: the author of a commit, and Node's name of the environment. */
const excepted = /^(GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|NODE_ENV)$/

const never: readonly RegExp[] = [
  /^(LD|DYLD|GLIBC|MALLOC|RESOLV)_/,
  /^(GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH|NLSPATH|RES_OPTIONS|TMPDIR|TZDIR)$/,
  // Shells: their start-up files, and how they read commands.
  /^(BASH|KSH|ZSH|FISH)(_|$)/,
  /^(PATH|ENV|IFS|SHELL|SHELLOPTS|BASHOPTS|CDPATH|GLOBIGNORE|FPATH|ZDOTDIR|PROMPT_COMMAND|PS[0-4]|HISTFILE|INPUTRC|POSIXLY_CORRECT)$/,
  /^(PYTHON|PERL|RUBY|NODE_|LUA|PHP|TCL|GUILE|ERL_|R_|JULIA_|GEM_|BUNDLE_|NPM_|DENO_|BUN_|DOTNET_|CORECLR_|COMPLUS_|JDK_|OPENSSL_|MAKE)/,
  /^(_?JAVA_.*|CLASSPATH|MFLAGS|AWKPATH|AWKLIBPATH)$/,
  // Tools that run what a variable says.
  /^(GIT|SVN|CVS|RSYNC|SUDO|SYSTEMD|LESS|VIM|EMACS|SELINUX|KRB5|GNUPG|DOCKER|KUBE|ANSIBLE|XDG|DBUS)/,
  /^(EDITOR|VISUAL|PAGER|MANPAGER|BROWSER|FCEDIT|EXINIT|VIMINIT|TERMINFO|TERMINFO_DIRS|TERMCAP|TERMPATH|SSLKEYLOGFILE)$/,
  // The user's identity, origin and forwardings: the agent sets these.
  /^(HOME|USER|LOGNAME|MAIL|PWD|OLDPWD|TERM|DISPLAY|XAUTHORITY)$/,
  /^(SSH|HAWSER|SHELLHUB)_/,
]

/** One name, or a prefix with `*`. */
export const variablePattern = '^[A-Za-z_][A-Za-z0-9_]{0,63}\\*?$'

/** Whether no namespace can allow the variable; for a prefix with `*`, whether it can allow none of them. */
export function neverPasses(name: string): boolean {
  // Shells and loaders know their variables in capital letters; some tools take theirs in either.
  const upper = name.replace(/\*$/, '').toUpperCase()
  return !excepted.test(upper) && never.some((pattern) => pattern.test(upper))
}

/** Undefined: the variable does not pass. `named`: the namespace allows it among `more`. */
export function passes(name: string, more: readonly string[]): 'always' | 'named' | undefined {
  if (always.test(name)) return 'always'
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(name) || neverPasses(name)) return undefined
  return more.some((entry) => (entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry))
    ? 'named'
    : undefined
}

/** Tells Hawser's own agent that the namespace allows a variable. */
const namedPrefix = 'HAWSER_ENV_'
/** No control characters, and nothing that old versions of bash take for a function. */
const text = /^(?!\(\))[^\p{Cc}]{0,4096}$/u

export const tellNamed = (name: string): string => `${namedPrefix}${name}`

/** Undefined: the name stands for no variable, or one that never passes. */
export function readNamed(name: string, value: string): string | undefined {
  if (!name.startsWith(namedPrefix) || !text.test(value)) return undefined
  const bare = name.slice(namedPrefix.length)
  return passes(bare, [bare]) === 'named' ? bare : undefined
}
