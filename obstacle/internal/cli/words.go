package cli

import (
	"slices"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/engine"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// wordsOf returns the words that a flag may have, for its check and for the completion of shells; nil if it takes
// others or if they come from a catalog.
func wordsOf(flag string) []string {
	return map[string][]string{
		"format":        {"text", "json"},
		"log-format":    {"text", "json"},
		"log-level":     {"debug", "info", "warn", "error", "off"},
		"color":         {"auto", "always", "never"},
		"recover":       {rendezvous.RecoverLocal, rendezvous.RecoverExact, rendezvous.RecoverOff},
		"step-mode":     {"step", "never"},
		"pin":           {"auto", "off"},
		"balance":       {"on", "off"},
		"protect":       {"auto", "always", "never"},
		"order":         {problem.Jacobi.String(), problem.InTurn.String()},
		"cycle":         {"v", "w", "auto"},
		"locality":      {"intra", "inter"},
		"local":         {problem.Richardson, problem.SOR, problem.Multigrid},
		"ib-mode":       rail.Modes(),
		"ib-completion": {"spin", "channel", "poll"},
		"kind":          file.Kinds(),
		"engine":        engine.Names(),
		"http-token":    {tokenRandom, tokenNone},
	}[flag]
}

// checkWord returns an error that suggests a word, unless the value of a flag is one of wordsOf.
func checkWord(flag, value string) error {
	if known := wordsOf(flag); !slices.Contains(known, value) {
		return badInput(catalog.Unknown(flag, value, known))
	}
	return nil
}

// checkWords is checkWord for pairs of flag and value. A value "" is valid: the command does not have the flag.
func checkWords(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if err := checkWord(pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}
